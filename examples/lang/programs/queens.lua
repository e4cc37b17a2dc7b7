-- Queens: places eight queens on a board, ten times. The result are the columns of the last board.
local rounds = 13000
local function filled(length, value)
    local list = {}
    for i = 0, length - 1 do list[#list + 1] = value end
    return list
end
local function isFree(board, row, column)
    return board.rows[row + 1] and board.maxs[column + row + 1] and board.mins[column - row + 8]
end
local function set(board, row, column, value)
    board.rows[row + 1] = value
    board.maxs[column + row + 1] = value
    board.mins[column - row + 8] = value
end
local function place(board, column)
    for row = 0, 7 do
        if isFree(board, row, column) then
            board.queens[row + 1] = column
            set(board, row, column, false)
            if column == 7 or place(board, column + 1) then return true end
            set(board, row, column, true)
        end
    end
    return false
end
local function queens()
    local board = {rows = filled(8, true), maxs = filled(16, true), mins = filled(16, true),
        queens = filled(8, -1)}
    if not place(board, 0) then error("no place is left for a queen", 0) end
    return board.queens
end
local function benchmark()
    local last = nil
    for i = 0, 9 do last = queens() end
    local columns = 0
    for row = 0, 7 do columns = columns * 10 + last[row + 1] + 1 end
    return columns
end
for round = 0, rounds - 1 do
    if benchmark() ~= 17582463 then error("the queens are at other places", 0) end
end
print(benchmark())
