/* Product of two n by n matrices in f64, by the definition. Elements are multiples of 1/8, so that every sum is exact
   and C x = A (B x) can be checked for equality. */
#include "kernel.h"

static double *a, *b, *c;

/* Returns the sum of the diagonal. */
EXPORT(matmul) double matmul(uint32_t n) {
  arena_reset();
  a = arena_get(n * n * 8);
  b = arena_get(n * n * 8);
  c = arena_get(n * n * 8);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < n; j++) {
      a[i * n + j] = ((double)((i * 7 + j * 3) % 23) - 11) / 8;
      b[i * n + j] = ((double)((i * 5 + j * 13) % 19) - 9) / 8;
    }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < n; j++) {
      double s = 0;
      for (uint32_t k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];
      c[i * n + j] = s;
    }
  double trace = 0;
  for (uint32_t i = 0; i < n; i++) trace += c[i * n + i];
  return trace;
}

static void times(const double *m, const double *x, double *y, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    y[i] = 0;
    for (uint32_t j = 0; j < n; j++) y[i] += m[i * n + j] * x[j];
  }
}

KERNEL(240) {
  figure_f("trace", matmul(n));
  double *x = arena_get(n * 8), *bx = arena_get(n * 8), *abx = arena_get(n * 8), *cx = arena_get(n * 8);
  for (uint32_t i = 0; i < n; i++) x[i] = (double)(i * i % 17) - 8;
  times(b, x, bx, n);
  times(a, bx, abx, n);
  times(c, x, cx, n);
  int ok = 1;
  for (uint32_t i = 0; i < n; i++) ok &= abx[i] == cx[i];
  return verdict("matmul", n, sum_bytes(SUM0, c, n * n * 8), ok);
}
