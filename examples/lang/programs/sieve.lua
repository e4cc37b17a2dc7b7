local function sieve(n)
  local composite = {}
  for i = 0, n - 1 do composite[i] = false end
  local count = 0
  for i = 2, n - 1 do
    if not composite[i] then
      count = count + 1
      local j = i + i
      while j < n do composite[j] = true; j = j + i end
    end
  end
  return count
end
local total = 0
for round = 1, 60 do total = total + sieve(200000) end
print(total)
