local function digits(n)
  local text = ""
  for i = 0, n - 1 do text = text .. string.char(48 + i % 10) end
  return text
end
local function hash(text)
  local h = 7
  for i = 1, #text do h = (h * 31 + string.byte(text, i)) % 65521 end
  return h
end
local total = 0
for round = 0, 59999 do total = total + hash(digits(200) .. tostring(round)) end
print(total)
