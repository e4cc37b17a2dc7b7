/* Calls through tables of function pointers of two types; checked by the same steps with a switch. The target is
   pseudo-random, so that no guess of it holds for long. */
#include "kernel.h"

typedef uint64_t step(uint64_t v, uint32_t k);
static uint64_t add(uint64_t v, uint32_t k) { return v + k; }
static uint64_t sub(uint64_t v, uint32_t k) { return v - (uint64_t)k * k; }
static uint64_t mul(uint64_t v, uint32_t k) { return v * (2 * (uint64_t)k + 1); }
static uint64_t flip(uint64_t v, uint32_t k) { return v ^ (uint64_t)k << 17; }
static uint64_t turn(uint64_t v, uint32_t k) { return v << (k & 31) | v >> (64 - (k & 31)) % 64; }
static uint64_t fold(uint64_t v, uint32_t k) { return (v >> 31) + (v & 0x7fffffff) * k; }
static uint64_t part(uint64_t v, uint32_t k) { return v / (k | 1); }
static uint64_t stay(uint64_t v, uint32_t k) { (void)k; return v; }
static step *const steps[8] = {add, sub, mul, flip, turn, fold, part, stay};

typedef double shape(double x);
static double line(double x) { return 0.5 * x - 1; }
static double square(double x) { return x * x * 0.125; }
static double inverse(double x) { return 3 / (x * x + 1); }
static double root(double x) { return __builtin_sqrt(__builtin_fabs(x)); }
static shape *const shapes[4] = {line, square, inverse, root};

static double float_part;

EXPORT(calls) uint64_t calls(uint32_t n, uint32_t seed) {
  uint64_t s = random_seed(seed), v = 1;
  double x = 1;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t r = random_next(&s);
    v = steps[r & 7](v, r >> 8);
    x = shapes[r >> 3 & 3](x);
  }
  float_part = x;
  return v ^ bits_of(x);
}

static uint64_t switched(uint32_t n, uint32_t seed) {
  uint64_t s = random_seed(seed), v = 1;
  double x = 1;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t r = random_next(&s), k = r >> 8;
    switch (r & 7) {
      case 0: v += k; break;
      case 1: v -= (uint64_t)k * k; break;
      case 2: v *= 2 * (uint64_t)k + 1; break;
      case 3: v ^= (uint64_t)k << 17; break;
      case 4: v = v << (k & 31) | v >> (64 - (k & 31)) % 64; break;
      case 5: v = (v >> 31) + (v & 0x7fffffff) * k; break;
      case 6: v /= k | 1; break;
      default: break;
    }
    switch (r >> 3 & 3) {
      case 0: x = 0.5 * x - 1; break;
      case 1: x = x * x * 0.125; break;
      case 2: x = 3 / (x * x + 1); break;
      default: x = __builtin_sqrt(__builtin_fabs(x)); break;
    }
  }
  return v ^ bits_of(x);
}

KERNEL(2000000) {
  uint64_t sum = calls(n, 13);
  figure_f("float part", float_part);
  return verdict("calls", n, sum, sum == switched(n, 13));
}
