// Towers: the towers of Hanoi with 13 disks, which are linked lists. The result is the number of
// moves.
"use strict";
const rounds = 2700;
function put(towers, disk, pile) {
    const top = towers.piles[pile];
    if (top !== null && disk.size >= top.size) { throw new Error("a disk is on a smaller disk"); }
    disk.next = top;
    towers.piles[pile] = disk;
}
function take(towers, pile) {
    const top = towers.piles[pile];
    if (top === null) { throw new Error("the pile is empty"); }
    towers.piles[pile] = top.next;
    top.next = null;
    return top;
}
function moveTop(towers, from, to) {
    put(towers, take(towers, from), to);
    towers.moves = towers.moves + 1;
}
function move(towers, disks, from, to) {
    if (disks === 1) { return moveTop(towers, from, to); }
    const other = 3 - from - to;
    move(towers, disks - 1, from, other);
    moveTop(towers, from, to);
    move(towers, disks - 1, other, to);
    return null;
}
function benchmark() {
    const towers = {piles: [null, null, null], moves: 0};
    for (let i = 0; i < 13; i++) { put(towers, {size: 13 - i, next: null}, 0); }
    move(towers, 13, 0, 1);
    return towers.moves;
}
for (let round = 0; round < rounds; round++) {
    if (benchmark() !== 8191) { throw new Error("the number of moves is another"); }
}
console.log(benchmark());
