-- Strings: joins short strings, and looks at their bytes.
local rounds = 115
local byte, char = string.byte, string.char
local function digits(n)
    local text = ""
    for i = 0, n - 1 do text = text .. char(48 + i % 10) end
    return text
end
local function hash(text)
    local h = 7
    for i = 0, #text - 1 do h = (h * 31 + byte(text, i + 1)) % 65521 end
    return h
end
local function benchmark()
    local total = 0
    for i = 0, 999 do total = total + hash(digits(200) .. tostring(i)) end
    return total
end
local total = benchmark()
for round = 0, rounds - 1 do
    if benchmark() ~= total then error("a text is another", 0) end
end
print(total)
