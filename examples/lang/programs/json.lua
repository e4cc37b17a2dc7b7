-- Json: reads a text of 156 operations into a tree. The result is the number of values in it.
local rounds = 900
local byte, char, sub = string.byte, string.char, string.sub
local readValue
-- Characters by their codes.
local tab = 9
local newline = 10
local blank = 32
local quote = 34
local plus = 43
local comma = 44
local minus = 45
local dot = 46
local zero = 48
local nine = 57
local colon = 58
local bracket = 91
local backslash = 92
local endBracket = 93
local brace = 123
local endBrace = 125
-- The kinds of values, each with its functions.
local function one(value) return 1 end
local function countList(value)
    local count = 1
    for i = 0, #value.items - 1 do
        local item = value.items[i + 1]
        count = count + item.kind.count(item)
    end
    return count
end
local literals = {name = "literal", count = one}
local numbers = {name = "number", count = one}
local strings = {name = "string", count = one}
local arrays = {name = "array", count = countList}
local objects = {name = "object", count = countList}
-- A table leads from the lengths of the names in an object to the last such name.
local function hash(name) return #name * 1402589 % 32 end
local function object()
    local table = {}
    for i = 0, 31 do table[#table + 1] = -1 end
    return {kind = objects, names = {}, items = {}, table = table}
end
local function add(object, name, value)
    object.table[hash(name) + 1] = #object.names
    object.names[#object.names + 1] = name
    object.items[#object.items + 1] = value
end
local function get(object, name)
    local names = object.names
    local index = object.table[hash(name) + 1]
    if index >= 0 and names[index + 1] == name then return object.items[index + 1] end
    for i = 0, #names - 1 do if names[i + 1] == name then return object.items[i + 1] end end
    return nil
end
-- The reader: a text, the next character, and where it is.
local function reader(text)
    return {text = text, at = 0, current = byte(text, 1), line = 1, start = 0, captured = ""}
end
local function read(r)
    if r.current == newline then r.line = r.line + 1 end
    r.at = r.at + 1
    if r.at < #r.text then r.current = byte(r.text, r.at + 1) else r.current = -1 end
end
local function expected(r, what)
    error("line " .. tostring(r.line) .. ": " .. what .. " is expected", 0)
end
local function skip(r)
    while r.current == blank or r.current == newline or r.current == tab do read(r) end
end
local function readIf(r, code)
    if r.current ~= code then return false end
    read(r)
    return true
end
local function isDigit(r) return r.current >= zero and r.current <= nine end
local function readDigits(r)
    if not isDigit(r) then expected(r, "a digit") end
    while isDigit(r) do read(r) end
end
local function capture(r)
    r.captured = ""
    r.start = r.at
end
local function pause(r)
    r.captured = r.captured .. sub(r.text, r.start + 1, r.at)
    r.start = r.at
end
local function readLiteral(r, text, value)
    for i = 0, #text - 1 do if not readIf(r, byte(text, i + 1)) then expected(r, text) end end
    return {kind = literals, value = value}
end
local function readNumber(r)
    capture(r)
    readIf(r, minus)
    if not readIf(r, zero) then readDigits(r) end
    if readIf(r, dot) then readDigits(r) end
    if r.current == 101 or r.current == 69 then
        read(r)
        if not readIf(r, plus) then readIf(r, minus) end
        readDigits(r)
    end
    pause(r)
    return {kind = numbers, value = r.captured}
end
local function escaped(r)
    if r.current == quote or r.current == backslash or r.current == 47 then
        return char(r.current)
    end
    if r.current == 110 then return "\n" end
    if r.current == 116 then return "\t" end
    return expected(r, "a character behind a backslash")
end
local function readText(r)
    if not readIf(r, quote) then expected(r, "a string") end
    capture(r)
    while r.current ~= quote do
        if r.current < blank then expected(r, "a quotation mark") end
        if r.current == backslash then
            pause(r)
            read(r)
            r.captured = r.captured .. escaped(r)
            read(r)
            r.start = r.at
        else
            read(r)
        end
    end
    pause(r)
    read(r)
    return r.captured
end
local function readArray(r)
    read(r)
    local items = {}
    skip(r)
    if readIf(r, endBracket) then return {kind = arrays, items = items} end
    local isOpen = true
    while isOpen do
        skip(r)
        items[#items + 1] = readValue(r)
        skip(r)
        isOpen = readIf(r, comma)
    end
    if not readIf(r, endBracket) then expected(r, "a comma or a bracket") end
    return {kind = arrays, items = items}
end
local function readObject(r)
    read(r)
    local made = object()
    skip(r)
    if readIf(r, endBrace) then return made end
    local isOpen = true
    while isOpen do
        skip(r)
        local name = readText(r)
        skip(r)
        if not readIf(r, colon) then expected(r, "a colon") end
        skip(r)
        add(made, name, readValue(r))
        skip(r)
        isOpen = readIf(r, comma)
    end
    if not readIf(r, endBrace) then expected(r, "a comma or a brace") end
    return made
end
function readValue(r)
    local code = r.current
    if code == quote then return {kind = strings, value = readText(r)} end
    if code == minus or isDigit(r) then return readNumber(r) end
    if code == brace then return readObject(r) end
    if code == bracket then return readArray(r) end
    if code == 110 then return readLiteral(r, "null", nil) end
    if code == 116 then return readLiteral(r, "true", true) end
    if code == 102 then return readLiteral(r, "false", false) end
    return expected(r, "a value")
end
local function parse(text)
    local r = reader(text)
    skip(r)
    local value = readValue(r)
    skip(r)
    if r.at < #text then expected(r, "the end") end
    return value
end
-- The text.
local function operation(i)
    local text = "  {\"id\": " .. tostring(i) .. ", \"target\": [\"w" .. tostring(i % 7) .. "\"], "
    if i % 3 == 0 then
        return text .. "\"action\": \"create\", \"service\": \"Shell\", \"x\": {}}"
    end
    if i % 3 == 1 then
        text = text .. "\"action\": \"set\", \"bounds\": [0, " .. tostring(i * 5)
        text = text .. ", 1280.5, -6.25e-2], \"visible\": true, \"enabled\": false, "
        return text .. "\"parent\": null}"
    end
    return text .. "\"action\": \"call\", \"label\": \"say \\\"hello\\\"\\n\\tto \\\\ and \\/\"}"
end
local function document()
    local text = "{\"head\": {\"requestCounter\": 4},\n\"operations\": [\n"
    for i = 0, 155 do
        if i > 0 then text = text .. ",\n" end
        text = text .. operation(i)
    end
    return text .. "\n]}\n"
end
local function benchmark(text)
    local tree = parse(text)
    if get(tree, "head").kind.name ~= "object" then error("the head is no object", 0) end
    local operations = get(tree, "operations")
    if operations.kind.name ~= "array" then error("the operations are no array", 0) end
    if #operations.items ~= 156 then error("the number of operations is another", 0) end
    local label = get(operations.items[3], "label")
    if label.value ~= "say \"hello\"\n\tto \\ and /" then error("a text is another", 0) end
    return tree.kind.count(tree)
end
local text = document()
local count = benchmark(text)
for round = 0, rounds - 1 do
    if benchmark(text) ~= count then error("the number of values is another", 0) end
end
print(#text)
print(count)
