/* 64-bit integer arithmetic of all sorts: signed and unsigned division, high products from halves, rotations, bit
   counts, narrowing and widening, square roots by way of f64, and arithmetic modulo 2^61 - 1. Every step tests an
   identity; failures are counted. */
#include "kernel.h"

static uint64_t failures;

static void test(int holds) { failures += !holds; }

static uint64_t rotate(uint64_t v, uint32_t k) { return v << (k & 63) | v >> (-k & 63); }

/* Upper 64 bits of the product, from four products of halves. */
static uint64_t high_product(uint64_t a, uint64_t b) {
  uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
  uint64_t mid = (al * bl >> 32) + al * bh, low = (uint32_t)mid + ah * bl;
  return ah * bh + (mid >> 32) + (low >> 32);
}

#define M61 (((uint64_t)1 << 61) - 1)
static uint64_t times_mod(uint64_t a, uint64_t b) {
  uint64_t lo = a * b, v = (lo & M61) + (high_product(a, b) << 3 | lo >> 61);
  return v >= M61 ? v - M61 : v;
}

static uint64_t power_mod(uint64_t base, uint64_t e) {
  uint64_t v = 1;
  for (; e != 0; e >>= 1) {
    if (e & 1) v = times_mod(v, base);
    base = times_mod(base, base);
  }
  return v;
}

static uint64_t root(uint64_t v) {
  uint64_t r = (uint64_t)__builtin_sqrt((double)v);
  while (r * r > v) r--;
  while ((r + 1) * (r + 1) <= v) r++;
  return r;
}

EXPORT(mixed) uint64_t mixed(uint32_t n, uint32_t seed) {
  uint64_t s = random_seed(seed), h = SUM0;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t a = (uint64_t)random_next(&s) << 32 | random_next(&s);
    uint64_t b = ((uint64_t)random_next(&s) << 32 | random_next(&s)) >> (i & 63);
    int64_t sa = (int64_t)a, sb = (int64_t)b;
    if (b != 0 && b != ~(uint64_t)0) {
      uint64_t q = a / b, r = a % b;
      int64_t sq = sa / sb, sr = sa % sb;
      test(r < b && q * b + r == a);
      test((uint64_t)sq * b + (uint64_t)sr == a && (sr == 0 || (sr < 0) == (sa < 0)));
      h = rotate(h, 7) ^ q ^ (uint64_t)sq;
    }
    uint32_t k = (uint32_t)(a & 63);
    test(rotate(rotate(a, k), 64 - k) == a);
    test(__builtin_popcountll(a) + __builtin_popcountll(~a) == 64);
    test(a == 0 || (a >> __builtin_ctzll(a) & 1 && a << __builtin_clzll(a) >> 63));
    test(high_product(a, b) == high_product(b, a));
    test(high_product(a, (uint64_t)1 << 63) == a >> 1);
    h = (h ^ high_product(a, b)) + (uint64_t)(int64_t)(int8_t)a - (uint64_t)(int64_t)(int16_t)b;
    h += (uint64_t)((int64_t)(int32_t)a * (int32_t)b) ^ (uint64_t)(sa >> k);
    uint64_t v = a >> 2, r = root(v);
    test(r * r <= v && v - r * r <= 2 * r);
    h ^= r << 11;
    float f = (float)sb;
    double d = (double)a;
    h += (uint64_t)(d / 1024) ^ (uint64_t)(int64_t)(f / 4096);
    if (i % 64 == 0) {
      uint64_t g = a % M61;
      test(g == 0 || power_mod(g, M61 - 1) == 1);
      h = sum_value(h, power_mod(g, b));
    }
  }
  return h;
}

KERNEL(300000) {
  uint64_t sum = mixed(n, 11);
  figure("failures", failures);
  return verdict("mixed", n, sum, failures == 0);
}
