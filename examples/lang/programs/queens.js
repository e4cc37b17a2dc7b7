// Queens: places eight queens on a board, ten times. The result are the columns of the last board.
"use strict";
const rounds = 13000;
function filled(length, value) {
    const list = [];
    for (let i = 0; i < length; i++) { list.push(value); }
    return list;
}
function isFree(board, row, column) {
    return board.rows[row] && board.maxs[column + row] && board.mins[column - row + 7];
}
function set(board, row, column, value) {
    board.rows[row] = value;
    board.maxs[column + row] = value;
    board.mins[column - row + 7] = value;
}
function place(board, column) {
    for (let row = 0; row < 8; row++) {
        if (isFree(board, row, column)) {
            board.queens[row] = column;
            set(board, row, column, false);
            if (column === 7 || place(board, column + 1)) { return true; }
            set(board, row, column, true);
        }
    }
    return false;
}
function queens() {
    const board = {rows: filled(8, true), maxs: filled(16, true), mins: filled(16, true),
        queens: filled(8, -1)};
    if (!place(board, 0)) { throw new Error("no place is left for a queen"); }
    return board.queens;
}
function benchmark() {
    let last = null;
    for (let i = 0; i < 10; i++) { last = queens(); }
    let columns = 0;
    for (let row = 0; row < 8; row++) { columns = columns * 10 + last[row] + 1; }
    return columns;
}
for (let round = 0; round < rounds; round++) {
    if (benchmark() !== 17582463) { throw new Error("the queens are at other places"); }
}
console.log(benchmark());
