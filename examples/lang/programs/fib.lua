-- Fib: recursion.
local rounds = 80
local function fib(n)
    if n < 2 then return n end
    return fib(n - 1) + fib(n - 2)
end
for round = 0, rounds - 1 do
    if fib(30) ~= 832040 then error("the number is another", 0) end
end
print(fib(20))
