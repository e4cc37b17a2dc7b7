// List: Takeuchi's function on linked lists, which stand for the numbers of their elements.
"use strict";
const rounds = 18000;
function list(length) {
    if (length === 0) { return null; }
    return {value: length, next: list(length - 1)};
}
function length(list) {
    if (list === null) { return 0; }
    return 1 + length(list.next);
}
function isShorter(x, y) {
    let a = x;
    let b = y;
    while (b !== null) {
        if (a === null) { return true; }
        a = a.next;
        b = b.next;
    }
    return false;
}
function tail(x, y, z) {
    if (isShorter(y, x)) {
        return tail(tail(x.next, y, z), tail(y.next, z, x), tail(z.next, x, y));
    }
    return z;
}
function benchmark() { return length(tail(list(15), list(10), list(6))); }
for (let round = 0; round < rounds; round++) {
    if (benchmark() !== 10) { throw new Error("the list has another length"); }
}
console.log(benchmark());
