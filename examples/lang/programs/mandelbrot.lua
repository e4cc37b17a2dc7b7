-- Mandelbrot: the set in a square of points. The result joins the bits of all points, eight in a
-- byte, by exclusive or.
local rounds = 16
-- LuaJIT has a function, and Lua 5.4 an operator.
local bxor = bit and bit.bxor or load("return function(a, b) return a ~ b end")()
local function escapes(cr, ci)
    local zrzr = 0.0
    local zi = 0.0
    local zizi = 0.0
    local z = 0
    while z < 50 do
        local zr = zrzr - zizi + cr
        zi = 2.0 * zr * zi + ci
        zrzr = zr * zr
        zizi = zi * zi
        if zrzr + zizi > 4.0 then return 1 end
        z = z + 1
    end
    return 0
end
local function mandelbrot(size)
    local sum = 0
    local bits = 0
    local count = 0
    for y = 0, size - 1 do
        local ci = 2.0 * y / size - 1.0
        for x = 0, size - 1 do
            bits = bits * 2 + escapes(2.0 * x / size - 1.5, ci)
            count = count + 1
            if count == 8 then
                sum = bxor(sum, bits)
                bits = 0
                count = 0
            elseif x == size - 1 then
                while count < 8 do
                    bits = bits * 2
                    count = count + 1
                end
                sum = bxor(sum, bits)
                bits = 0
                count = 0
            end
        end
    end
    return sum
end
for round = 0, rounds - 1 do
    if mandelbrot(500) ~= 191 then error("the set is another", 0) end
end
print(mandelbrot(1))
print(mandelbrot(100))
