-- Sieve: the number of primes below a bound.
local rounds = 15000
local function sieve(n)
    local composite = {}
    for i = 0, n - 1 do composite[i + 1] = false end
    local count = 0
    for i = 2, n - 1 do
        if not composite[i + 1] then
            count = count + 1
            local j = i + i
            while j < n do composite[j + 1] = true j = j + i end
        end
    end
    return count
end
for round = 0, rounds - 1 do
    if sieve(5000) ~= 669 then error("the number of primes is another", 0) end
end
print(sieve(5000))
