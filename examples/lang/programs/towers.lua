-- Towers: the towers of Hanoi with 13 disks, which are linked lists. The result is the number of
-- moves.
local rounds = 2700
local function put(towers, disk, pile)
    local top = towers.piles[pile + 1]
    if top ~= nil and disk.size >= top.size then error("a disk is on a smaller disk", 0) end
    disk.next = top
    towers.piles[pile + 1] = disk
end
local function take(towers, pile)
    local top = towers.piles[pile + 1]
    if top == nil then error("the pile is empty", 0) end
    towers.piles[pile + 1] = top.next
    top.next = nil
    return top
end
local function moveTop(towers, from, to)
    put(towers, take(towers, from), to)
    towers.moves = towers.moves + 1
end
local function move(towers, disks, from, to)
    if disks == 1 then return moveTop(towers, from, to) end
    local other = 3 - from - to
    move(towers, disks - 1, from, other)
    moveTop(towers, from, to)
    move(towers, disks - 1, other, to)
    return nil
end
local function benchmark()
    local towers = {piles = {nil, nil, nil}, moves = 0}
    for i = 0, 12 do put(towers, {size = 13 - i, next = nil}, 0) end
    move(towers, 13, 0, 1)
    return towers.moves
end
for round = 0, rounds - 1 do
    if benchmark() ~= 8191 then error("the number of moves is another", 0) end
end
print(benchmark())
