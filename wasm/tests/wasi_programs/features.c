/* Code for which compilers use parts of WebAssembly that came after its first version. The build
   compiles it twice: with the compiler's own default set, and with every part that Osier imports. */
#include "say.h"
#include <stdint.h>

#define APART __attribute__((noinline))

struct triple { int64_t a; int32_t b; double c; };

/* Multiple values. */
APART struct triple make(int32_t x) { return (struct triple){x * 3LL, x + 1, x / 4.0}; }
APART __int128 wide(int64_t a, int64_t b) { return ((__int128)a << 9) - b; }

/* Sign extension. */
APART int32_t narrow(int32_t x) { return (int8_t)x + (int16_t)(x >> 3); }
APART int64_t narrow_64(int64_t x) { return (int8_t)x + (int16_t)(x >> 3) + (int32_t)(x >> 9); }

/* Conversions that do not trap. */
APART int32_t to_int(double x) { return (int32_t)x; }
APART uint64_t to_u64(float x) { return (uint64_t)x; }

/* Bulk memory. */
static char bytes[5000], copy[5000];
APART void fill(char *to, int value, size_t n) { memset(to, value, n); }
APART void move(char *to, const char *from, size_t n) { memmove(to, from, n); }
APART void duplicate(char *to, const char *from, size_t n) { memcpy(to, from, n); }

/* Tables. */
typedef int32_t (*operation)(int32_t);
static int32_t twice(int32_t x) { return 2 * x; }
static int32_t square(int32_t x) { return x * x; }
static operation volatile operations[] = {twice, square, narrow};

int main(void) {
  struct triple t = make(41);
  say("a", t.a);
  say("b", t.b);
  say("c", t.c * 100);
  __int128 w = wide(INT64_MAX, -12345678901234);
  say("low", (int64_t)w);
  say("high", (int64_t)(w >> 64));
  for (int32_t x = -1000000; x < 1000000; x += 333333) say("narrow", narrow(x));
  say("narrow 64", narrow_64(-0x123456789abcdefLL));
  say("int", to_int(-1234567.9));
  say("u64", to_u64(1.5e19f) >> 1);
  fill(bytes, 'x', sizeof bytes);
  fill(bytes + 100, 'y', 3000);
  move(bytes + 50, bytes, 4000);
  move(bytes, bytes + 30, 4000);
  duplicate(copy, bytes, sizeof copy);
  unsigned sum = 0;
  for (unsigned i = 0; i < sizeof copy; i++) sum = sum * 31 + copy[i];
  say("sum", sum);
  for (int i = 0; i < 3; i++) say("operation", operations[i](1000 + i));
  return 0;
}
