// Storage: a tree of arrays, seven deep. The result is the number of its arrays.
"use strict";
const rounds = 1200;
function next(random) {
    random.seed = (random.seed * 1309 + 13849) % 65536;
    return random.seed;
}
function filled(length) {
    const list = [];
    for (let i = 0; i < length; i++) { list.push(false); }
    return list;
}
function tree(counts, depth, random) {
    counts.arrays = counts.arrays + 1;
    if (depth === 1) { return filled(next(random) % 10 + 1); }
    const list = filled(4);
    for (let i = 0; i < 4; i++) { list[i] = tree(counts, depth - 1, random); }
    return list;
}
function benchmark() {
    const counts = {arrays: 0};
    tree(counts, 7, {seed: 74755});
    return counts.arrays;
}
for (let round = 0; round < rounds; round++) {
    if (benchmark() !== 5461) { throw new Error("the tree has another number of arrays"); }
}
console.log(benchmark());
