-- Storage: a tree of arrays, seven deep. The result is the number of its arrays.
local rounds = 1200
local function next(random)
    random.seed = (random.seed * 1309 + 13849) % 65536
    return random.seed
end
local function filled(length)
    local list = {}
    for i = 0, length - 1 do list[#list + 1] = false end
    return list
end
local function tree(counts, depth, random)
    counts.arrays = counts.arrays + 1
    if depth == 1 then return filled(next(random) % 10 + 1) end
    local list = filled(4)
    for i = 0, 3 do list[i + 1] = tree(counts, depth - 1, random) end
    return list
end
local function benchmark()
    local counts = {arrays = 0}
    tree(counts, 7, {seed = 74755})
    return counts.arrays
end
for round = 0, rounds - 1 do
    if benchmark() ~= 5461 then error("the tree has another number of arrays", 0) end
end
print(benchmark())
