// Sum: a loop that calls a function.
"use strict";
const rounds = 200;
function add(a, b) { return a + b; }
function sums(n) {
    let s = 0;
    for (let i = 0; i < n; i++) { s = add(s, i % 7); }
    return s;
}
for (let round = 0; round < rounds; round++) {
    if (sums(1000000) !== 2999997) { throw new Error("the sum is another"); }
}
console.log(sums(1000000));
