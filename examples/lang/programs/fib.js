// Fib: recursion.
"use strict";
const rounds = 80;
function fib(n) {
    if (n < 2) { return n; }
    return fib(n - 1) + fib(n - 2);
}
for (let round = 0; round < rounds; round++) {
    if (fib(30) !== 832040) { throw new Error("the number is another"); }
}
console.log(fib(20));
