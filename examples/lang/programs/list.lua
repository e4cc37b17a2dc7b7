-- List: Takeuchi's function on linked lists, which stand for the numbers of their elements.
local rounds = 18000
local length
local function list(length)
    if length == 0 then return end
    return {value = length, next = list(length - 1)}
end
function length(list)
    if list == nil then return 0 end
    return 1 + length(list.next)
end
local function isShorter(x, y)
    local a = x
    local b = y
    while b ~= nil do
        if a == nil then return true end
        a = a.next
        b = b.next
    end
    return false
end
local function tail(x, y, z)
    if isShorter(y, x) then
        return tail(tail(x.next, y, z), tail(y.next, z, x), tail(z.next, x, y))
    end
    return z
end
local function benchmark() return length(tail(list(15), list(10), list(6))) end
for round = 0, rounds - 1 do
    if benchmark() ~= 10 then error("the list has another length", 0) end
end
print(benchmark())
