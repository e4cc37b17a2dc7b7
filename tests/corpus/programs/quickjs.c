/* QuickJS: an engine for JavaScript runs a script of all sorts n times: objects and closures, strings and a regular
   expression, JSON, sorting, big integers. Each round must give the result of the first. */
#include "driver.h"
#include "quickjs.h"

static const char script[] =
  "function Point(x, y) { this.x = x; this.y = y; }\n"
  "Point.prototype.add = function (p) { return new Point(this.x + p.x, this.y + p.y); };\n"
  "class Tree {\n"
  "  constructor(key) { this.key = key; this.left = null; this.right = null; }\n"
  "  put(key) {\n"
  "    for (let at = this; ;) {\n"
  "      const side = key < at.key ? 'left' : 'right';\n"
  "      if (!at[side]) { at[side] = new Tree(key); return; }\n"
  "      at = at[side];\n"
  "    }\n"
  "  }\n"
  "  *[Symbol.iterator]() {\n"
  "    const above = [];\n"
  "    for (let at = this; at || above.length; at = at.right) {\n"
  "      for (; at; at = at.left) above.push(at);\n"
  "      at = above.pop();\n"
  "      yield at.key;\n"
  "    }\n"
  "  }\n"
  "}\n"
  "function round() {\n"
  "  let sum = 0, seed = 42, at = new Point(0, 0);\n"
  "  const next = () => (seed = seed * 1103515245 + 12345 & 0x7fffffff) >>> 8;\n"
  "  for (let i = 0; i < 300; i++) at = at.add(new Point(next() % 100, 1));\n"
  "  sum += at.x * 1000 + at.y;\n"
  "  const tree = new Tree(next());\n"
  "  for (let i = 0; i < 100; i++) tree.put(next());\n"
  "  let before = -1;\n"
  "  for (const key of tree) { if (key < before) throw new Error('order'); before = key; }\n"
  "  const words = [];\n"
  "  for (let i = 0; i < 150; i++) words.push('w' + (next() % 50).toString(36) + '-' + next() % 10);\n"
  "  const text = words.sort().join(' ');\n"
  "  sum += text.replace(/w([a-z0-9]+)-(\\d)/g, (all, a, b) => b + a).length;\n"
  "  for (const word of text.split(' ')) sum = sum * 31 + word.charCodeAt(1) | 0;\n"
  "  const table = new Map();\n"
  "  for (const word of words) table.set(word, (table.get(word) || 0) + 1);\n"
  "  const copy = JSON.parse(JSON.stringify({ pairs: [...table], at, nested: { words } }));\n"
  "  sum += copy.pairs.length + copy.nested.words.length;\n"
  "  let big = 1n;\n"
  "  for (let i = 1n; i <= 60n; i++) big *= i;\n"
  "  sum += Number(big % 1000003n) + [...'abc'].map((c, i) => Math.sqrt(i + c.length)).length;\n"
  "  return sum >>> 0;\n"
  "}\n"
  "round";

int main(int argc, char **argv) {
  uint32_t n = size_argument(argc, argv, 100), first = 0;
  JSRuntime *runtime = JS_NewRuntime();
  JSContext *context = runtime ? JS_NewContext(runtime) : 0;
  if (context == 0) return 3;
  JS_SetMaxStackSize(runtime, 0);
  JSValue round = JS_Eval(context, script, sizeof script - 1, "script", JS_EVAL_TYPE_GLOBAL);
  int ok = JS_IsFunction(context, round);
  uint64_t sum = SUM0;
  for (uint32_t i = 0; i < n && ok; i++) {
    uint32_t value = 0;
    JSValue result = JS_Call(context, round, JS_UNDEFINED, 0, 0);
    ok = !JS_IsException(result) && JS_ToUint32(context, &value, result) == 0;
    JS_FreeValue(context, result);
    if (i == 0) first = value;
    ok = ok && value == first;
    sum = sum_value(sum, value);
  }
  JS_FreeValue(context, round);
  figure("value", first);
  JS_FreeContext(context);
  JS_FreeRuntime(runtime);
  return verdict("quickjs", n, sum, ok && first != 0);
}
