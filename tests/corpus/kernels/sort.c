/* Quicksort by recursion and heapsort, on the same n pseudo-random numbers; each checks the other. */
#include "kernel.h"

static void swap(int32_t *a, int32_t *b) {
  int32_t t = *a;
  *a = *b;
  *b = t;
}

static void quicksort(int32_t *v, int32_t from, int32_t to) {
  if (to - from < 8) {
    for (int32_t i = from + 1; i <= to; i++)
      for (int32_t j = i; j > from && v[j] < v[j - 1]; j--) swap(&v[j], &v[j - 1]);
    return;
  }
  int32_t mid = from + (to - from) / 2;
  if (v[mid] < v[from]) swap(&v[mid], &v[from]);
  if (v[to] < v[from]) swap(&v[to], &v[from]);
  if (v[to] < v[mid]) swap(&v[to], &v[mid]);
  int32_t pivot = v[mid], i = from, j = to;
  while (i <= j) {
    while (v[i] < pivot) i++;
    while (v[j] > pivot) j--;
    if (i <= j) swap(&v[i++], &v[j--]);
  }
  quicksort(v, from, j);
  quicksort(v, i, to);
}

static void sift(int32_t *v, uint32_t at, uint32_t n) {
  for (;;) {
    uint32_t child = 2 * at + 1;
    if (child >= n) return;
    if (child + 1 < n && v[child] < v[child + 1]) child++;
    if (v[at] >= v[child]) return;
    swap(&v[at], &v[child]);
    at = child;
  }
}

static void heapsort(int32_t *v, uint32_t n) {
  for (uint32_t i = n / 2; i > 0; i--) sift(v, i - 1, n);
  for (uint32_t i = n; i > 1; i--) {
    swap(&v[0], &v[i - 1]);
    sift(v, 0, i - 1);
  }
}

static int32_t *fill(uint32_t n, uint32_t seed) {
  int32_t *v = arena_get(n * 4);
  uint64_t s = random_seed(seed);
  for (uint32_t i = 0; i < n; i++) v[i] = (int32_t)random_next(&s) >> (i % 3 * 8);
  return v;
}

static int32_t *sorted;

/* Both return a sum that depends on the order of the numbers. */
EXPORT(quick) uint64_t quick(uint32_t n, uint32_t seed) {
  arena_reset();
  sorted = fill(n, seed);
  quicksort(sorted, 0, (int32_t)n - 1);
  return sum_bytes(SUM0, sorted, n * 4);
}

EXPORT(heap) uint64_t heap(uint32_t n, uint32_t seed) {
  arena_reset();
  sorted = fill(n, seed);
  heapsort(sorted, n);
  return sum_bytes(SUM0, sorted, n * 4);
}

KERNEL(300000) {
  uint64_t first = quick(n, 2), second = heap(n, 2);
  int ok = first == second;
  for (uint32_t i = 1; i < n; i++) ok &= sorted[i - 1] <= sorted[i];
  if (n > 0) {
    figure("least", (uint64_t)sorted[0] & 0xffffffffu);
    figure("middle", (uint64_t)sorted[n / 2] & 0xffffffffu);
  }
  return verdict("sort", n, first, ok);
}
