// Permute: all permutations of six numbers. The result is the number of calls.
"use strict";
const rounds = 9000;
function swap(permuter, i, j) {
    const v = permuter.v;
    const x = v[i];
    v[i] = v[j];
    v[j] = x;
}
function permute(permuter, n) {
    permuter.count = permuter.count + 1;
    if (n !== 0) {
        const last = n - 1;
        permute(permuter, last);
        let i = last;
        while (i >= 0) {
            swap(permuter, last, i);
            permute(permuter, last);
            swap(permuter, last, i);
            i = i - 1;
        }
    }
}
function benchmark() {
    const permuter = {count: 0, v: [0, 1, 2, 3, 4, 5]};
    permute(permuter, 6);
    return permuter.count;
}
for (let round = 0; round < rounds; round++) {
    if (benchmark() !== 8660) { throw new Error("the number of calls is another"); }
}
console.log(benchmark());
