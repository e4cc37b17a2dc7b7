/* Edit distance of two strings of n letters by dynamic programming with one row; checked with the full table and by
   walking back through it. */
#include "kernel.h"

static uint8_t *a, *b;
static uint32_t blen;

static uint32_t least(uint32_t x, uint32_t y, uint32_t z) {
  if (y < x) x = y;
  return z < x ? z : x;
}

/* The second string is the first with about one letter in eight changed, dropped or doubled. */
static void make_strings(uint32_t n, uint32_t seed) {
  uint64_t s = random_seed(seed);
  a = arena_get(n);
  b = arena_get(2 * n);
  blen = 0;
  for (uint32_t i = 0; i < n; i++) {
    a[i] = (uint8_t)('a' + random_next(&s) % 4);
    uint32_t r = random_next(&s) % 24;
    if (r == 0) continue;
    b[blen++] = r == 1 ? 'x' : a[i];
    if (r == 2) b[blen++] = a[i];
  }
}

EXPORT(edit) uint32_t edit(uint32_t n, uint32_t seed) {
  arena_reset();
  make_strings(n, seed);
  uint32_t *row = arena_get((blen + 1) * 4);
  for (uint32_t j = 0; j <= blen; j++) row[j] = j;
  for (uint32_t i = 1; i <= n; i++) {
    uint32_t corner = row[0];
    row[0] = i;
    for (uint32_t j = 1; j <= blen; j++) {
      uint32_t up = row[j];
      row[j] = least(up + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1]));
      corner = up;
    }
  }
  return row[blen];
}

KERNEL(1200) {
  uint32_t distance = edit(n, 5), w = blen + 1;
  uint16_t *t = arena_get((n + 1) * w * 2);
  for (uint32_t i = 0; i <= n; i++)
    for (uint32_t j = 0; j <= blen; j++)
      t[i * w + j] = (uint16_t)(i == 0 ? j : j == 0 ? i
                     : least(t[(i - 1) * w + j] + 1u, t[i * w + j - 1] + 1u,
                             t[(i - 1) * w + j - 1] + (a[i - 1] != b[j - 1])));
  uint32_t i = n, j = blen, cost = 0;
  while (i > 0 || j > 0) {
    uint32_t here = t[i * w + j];
    if (i > 0 && j > 0 && here == t[(i - 1) * w + j - 1] + (uint32_t)(a[i - 1] != b[j - 1])) {
      i--;
      j--;
      cost += a[i] != b[j];
    } else {
      if (i > 0 && here == t[(i - 1) * w + j] + 1u) i--;
      else j--;
      cost++;
    }
  }
  uint64_t sum = sum_bytes(sum_bytes(SUM0, b, blen), t + n * w, w * 2);
  figure("distance", distance);
  return verdict("edit", n, sum, distance == t[n * w + blen] && distance == cost);
}
