// Strings: joins short strings, and looks at their bytes.
"use strict";
const rounds = 115;
function digits(n) {
    let text = "";
    for (let i = 0; i < n; i++) { text = text + String.fromCharCode(48 + i % 10); }
    return text;
}
function hash(text) {
    let h = 7;
    for (let i = 0; i < text.length; i++) { h = (h * 31 + text.charCodeAt(i)) % 65521; }
    return h;
}
function benchmark() {
    let total = 0;
    for (let i = 0; i < 1000; i++) { total = total + hash(digits(200) + String(i)); }
    return total;
}
const total = benchmark();
for (let round = 0; round < rounds; round++) {
    if (benchmark() !== total) { throw new Error("a text is another"); }
}
console.log(total);
