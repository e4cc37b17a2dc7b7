/* Lua: a script that makes calls, closures, tables, objects, strings, patterns, and computes with integers and floats. Each
   part is done n times over or on data of a size in proportion to n, and is compared with the same thing computed another
   way. There is no setjmp here: an error would abort, so the script makes none, and no coroutine yields. */
#include <stdio.h>
#include <time.h>
#include "driver.h"
#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"

/* The libraries can open files and seed a generator by the clock. Here there are no files, nor any time. */
FILE *fopen(const char *name, const char *mode) { return 0; }
FILE *freopen(const char *name, const char *mode, FILE *file) { return 0; }
time_t time(time_t *t) { return t ? *t = 0 : 0; }

static const char script[] =
    "local n = ...\n"
    /* Calls. */
    "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end\n"
    "local function sum(...) local s = 0 for _, v in ipairs {...} do s = s + v end return s end\n"
    "local a, b, calls = 0, 1, 0\n"
    "for k = 1, 15 do a, b = b, a + b end\n"
    "for k = 1, n do calls = calls + fib(15) + sum(k, 2, -k) end\n"
    "figure('calls', calls, (a + 2) * n)\n"
    /* Closures. */
    "local function counter(step) local c = 0 return function() c = c + step return c end end\n"
    "local one, three, last = counter(1), counter(3), 0\n"
    "for _ = 1, 400 * n do last = one() + three() end\n"
    "figure('closures', last, 1600 * n)\n"
    /* Tables, sorted by a function of ours and by the default order. */
    "local t, copy = {}, {}\n"
    "for i = 1, 100 * n do t[i] = i * 7919 % 10007 * 1000003 + i; copy[i] = t[i] end\n"
    "table.sort(t, function(x, y) return x > y end)\n"
    "table.sort(copy)\n"
    "local wrong = 0\n"
    "for i = 1, #t do if t[i] ~= copy[#t + 1 - i] then wrong = wrong + 1 end end\n"
    "figure('sorted', wrong, 0)\n"
    "figure('median', t[#t // 2], copy[#t + 1 - #t // 2])\n"
    "local odd = {} for i = 1, #t do odd[t[i]] = i % 2 == 1 or nil end\n"
    "local found = 0 for _ in pairs(odd) do found = found + 1 end\n"
    "figure('pairs', found, (#t + 1) // 2)\n"
    /* Strings and patterns. */
    "local words, all = {}, 0\n"
    "for w in (('now is the time for all good men to come '):rep(n)):gmatch('%a+') do\n"
    "  words[w] = (words[w] or 0) + 1; all = all + 1\n"
    "end\n"
    "figure('words', all + words.time, 11 * n)\n"
    "local parts = {}\n"
    "for i = 1, 8 * n do parts[#parts + 1] = string.format('%05d:%x:%g;', i, i * 31, i / 8) end\n"
    "local text = table.concat(parts)\n"
    "local digits, total = 0, 0\n"
    "text:gsub('(%d+):(%x+):([%d.e+]+);', function(i, x, q)\n"
    "  digits = digits + #i; total = total + tonumber(x, 16) - 31 * tonumber(i) + (tonumber(q) * 8 // 1 - tonumber(i)) end)\n"
    "figure('formatted', digits + total, 40 * n)\n"
    "figure('reversed', text:reverse():upper():reverse():lower() == text and #text or 0, #text)\n"
    /* Objects with operators. */
    "local V = {} V.__index = V\n"
    "local function vec(x, y) return setmetatable({x = x, y = y}, V) end\n"
    "V.__add = function(p, q) return vec(p.x + q.x, p.y + q.y) end\n"
    "V.__eq = function(p, q) return p.x == q.x and p.y == q.y end\n"
    "V.__call = function(p, k) return p.x * k - p.y end\n"
    "local at, m = vec(0, 0), 100 * n\n"
    "for i = 1, m do at = at + vec(i, -i) end\n"
    "figure('objects', at(2) // 1, 3 * (m * (m + 1) // 2))\n"
    "figure('equal', at == vec(m * (m + 1) // 2, -(m * (m + 1) // 2)) and 1 or 0, 1)\n"
    /* Floats: a series that telescopes, and its sum in closed form; integers: a sieve, and bits. */
    "local x, y = 0.0, 0.0\n"
    "for i = 1, 500 * n do x = x + 1.0 / ((2 * i - 1.0) * (2 * i + 1.0)); y = 0.5 * (1.0 - 1.0 / (2 * i + 1)) end\n"
    "figure('floats', math.floor(x * 1e6 + 0.5), math.floor(y * 1e6 + 0.5))\n"
    "local sieve, primes, tested = {}, 0, 0\n"
    "for i = 2, 40 * n do\n"
    "  if not sieve[i] then primes = primes + 1 for j = i * i, 40 * n, i do sieve[j] = true end end\n"
    "end\n"
    "for i = 2, 40 * n do\n"
    "  local d = 2\n"
    "  while d * d <= i and i % d ~= 0 do d = d + 1 end\n"
    "  if d * d > i then tested = tested + 1 end\n"
    "end\n"
    "figure('primes', primes, tested)\n"
    "local h, back = 0x243f6a8885a308d3, 0\n"
    "for i = 1, 300 * n do h = (h << 7 | h >> 57) ~ (i * 0x9e3779b97f4a7c15) end\n"
    "back = h\n"
    "for i = 300 * n, 1, -1 do back = back ~ (i * 0x9e3779b97f4a7c15); back = back >> 7 | back << 57 end\n"
    "figure('bits', back, 0x243f6a8885a308d3)\n"
    "collectgarbage()\n";

static uint64_t sum = SUM0;
static int ok = 1;

/* figure(name, value, the same computed another way) */
static int script_figure(lua_State *l) {
  lua_Integer value = luaL_checkinteger(l, 2);
  figure(luaL_checkstring(l, 1), (uint64_t)value);
  sum = sum_value(sum, (uint64_t)value);
  ok &= value == luaL_checkinteger(l, 3);
  return 0;
}

int main(int argc, char **argv) {
  uint32_t n = size_argument(argc, argv, 600);
  lua_State *l = luaL_newstate();
  if (l == 0) return 3;
  luaL_requiref(l, "_G", luaopen_base, 1);
  luaL_requiref(l, "table", luaopen_table, 1);
  luaL_requiref(l, "string", luaopen_string, 1);
  luaL_requiref(l, "math", luaopen_math, 1);
  lua_settop(l, 0);
  lua_register(l, "figure", script_figure);
  ok &= luaL_loadstring(l, script) == LUA_OK;
  if (!ok) {
    out_str(lua_tostring(l, -1));
    out_char('\n');
  } else {
    lua_pushinteger(l, n);
    lua_call(l, 1, 0);
  }
  lua_close(l);
  return verdict("lua", n, sum, ok);
}
