/* Ways to place n queens on an n by n board, by backtracking over bit sets: deep recursion, hardly any memory. */
#include "kernel.h"

static uint32_t place(uint32_t all, uint32_t columns, uint32_t left, uint32_t right) {
  if (columns == all) return 1;
  uint32_t ways = 0, open = all & ~(columns | left | right);
  while (open != 0) {
    uint32_t bit = open & -open;
    open ^= bit;
    ways += place(all, columns | bit, (left | bit) << 1, (right | bit) >> 1);
  }
  return ways;
}

EXPORT(queens) uint32_t queens(uint32_t n) { return place((1u << n) - 1, 0, 0, 0); }

/* The same without bit sets: row[i] is where the queen of column i stands. */
static uint32_t place_plain(int8_t *row, int n, int i) {
  if (i == n) return 1;
  uint32_t ways = 0;
  for (int r = 0; r < n; r++) {
    int fits = 1;
    for (int j = 0; j < i && fits; j++) fits = row[j] != r && row[j] - r != j - i && row[j] - r != i - j;
    row[i] = (int8_t)r;
    if (fits) ways += place_plain(row, n, i + 1);
  }
  return ways;
}

KERNEL(10) {
  if (n < 1 || n > 16) return 2;
  int8_t row[16];
  uint64_t sum = SUM0;
  int ok = 1;
  for (uint32_t k = 1; k <= n; k++) {
    uint32_t ways = queens(k);
    sum = sum_value(sum, ways);
    if (k + 1 >= n) ok &= ways == place_plain(row, (int)k, 0);
    if (k == n) figure("ways", ways);
  }
  return verdict("queens", n, sum, ok);
}
