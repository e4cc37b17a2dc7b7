local function add(a, b) return a + b end
local function sums(n)
  local s = 0
  for i = 0, n - 1 do s = add(s, i % 7) end
  return s
end
print(sums(20000000))
