/* Integer division: Collatz chains from every start below n, and greatest common divisors by remainders. Chains are
   checked with a table of lengths already known, divisors by the algorithm of halving and subtracting. */
#include "kernel.h"

static uint32_t chain(uint32_t start) {
  uint64_t v = start;
  uint32_t steps = 0;
  while (v > 1) {
    v = v % 2 == 0 ? v / 2 : v * 3 + 1;
    steps++;
  }
  return steps;
}

static uint32_t gcd(uint32_t a, uint32_t b) {
  while (b != 0) {
    uint32_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

static uint32_t gcd_halving(uint32_t a, uint32_t b) {
  if (a == 0 || b == 0) return a | b;
  uint32_t twos = (uint32_t)__builtin_ctz(a | b);
  a >>= __builtin_ctz(a);
  while (b != 0) {
    b >>= __builtin_ctz(b);
    if (a > b) {
      uint32_t t = a;
      a = b;
      b = t;
    }
    b -= a;
  }
  return a << twos;
}

/* Start in the upper half, its number of steps in the lower half, of the longest chain. */
EXPORT(collatz) uint64_t collatz(uint32_t n) {
  uint32_t best = 0, at = 0;
  for (uint32_t i = 1; i < n; i++) {
    uint32_t steps = chain(i);
    if (steps > best) {
      best = steps;
      at = i;
    }
  }
  return (uint64_t)at << 32 | best;
}

/* Sum of the greatest common divisors of n pseudo-random pairs. */
EXPORT(gcds) uint64_t gcds(uint32_t n, uint32_t seed) {
  uint64_t s = random_seed(seed), total = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t a = random_next(&s), b = random_next(&s) % 5000000;
    total += gcd(a, b);
  }
  return total;
}

KERNEL(200000) {
  uint64_t longest = collatz(n), divisors = gcds(n, 7);
  arena_reset();
  uint16_t *known = arena_get(n * 2 + 4);
  uint32_t best = 0;
  known[0] = known[1] = 0;
  for (uint32_t i = 2; i < n; i++) {
    uint64_t v = i;
    uint32_t steps = 0;
    while (v >= i) {
      v = v & 1 ? 3 * v + 1 : v >> 1;
      steps++;
    }
    known[i] = (uint16_t)(known[v] + steps);
    if (known[i] > known[best]) best = i;
  }
  uint64_t s = random_seed(7), total = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t a = random_next(&s), b = random_next(&s) % 5000000;
    total += gcd_halving(a, b);
  }
  figure("longest chain from", longest >> 32);
  figure("steps", longest & 0xffffffffu);
  figure("sum of divisors", divisors);
  int ok = total == divisors && (n < 3 || longest == ((uint64_t)best << 32 | known[best]));
  return verdict("divide", n, sum_value(sum_value(SUM0, longest), divisors), ok);
}
