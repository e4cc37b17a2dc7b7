-- Permute: all permutations of six numbers. The result is the number of calls.
local rounds = 9000
local function swap(permuter, i, j)
    local v = permuter.v
    local x = v[i + 1]
    v[i + 1] = v[j + 1]
    v[j + 1] = x
end
local function permute(permuter, n)
    permuter.count = permuter.count + 1
    if n ~= 0 then
        local last = n - 1
        permute(permuter, last)
        local i = last
        while i >= 0 do
            swap(permuter, last, i)
            permute(permuter, last)
            swap(permuter, last, i)
            i = i - 1
        end
    end
end
local function benchmark()
    local permuter = {count = 0, v = {0, 1, 2, 3, 4, 5}}
    permute(permuter, 6)
    return permuter.count
end
for round = 0, rounds - 1 do
    if benchmark() ~= 8660 then error("the number of calls is another", 0) end
end
print(benchmark())
