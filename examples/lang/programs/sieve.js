// Sieve: the number of primes below a bound.
"use strict";
const rounds = 15000;
function sieve(n) {
    const composite = [];
    for (let i = 0; i < n; i++) { composite[i] = false; }
    let count = 0;
    for (let i = 2; i < n; i++) {
        if (!composite[i]) {
            count = count + 1;
            let j = i + i;
            while (j < n) { composite[j] = true; j = j + i; }
        }
    }
    return count;
}
for (let round = 0; round < rounds; round++) {
    if (sieve(5000) !== 669) { throw new Error("the number of primes is another"); }
}
console.log(sieve(5000));
