-- Sum: a loop that calls a function.
local rounds = 200
local function add(a, b) return a + b end
local function sums(n)
    local s = 0
    for i = 0, n - 1 do s = add(s, i % 7) end
    return s
end
for round = 0, rounds - 1 do
    if sums(1000000) ~= 2999997 then error("the sum is another", 0) end
end
print(sums(1000000))
