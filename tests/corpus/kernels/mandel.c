/* The Mandelbrot set in f32 on n by n points, row by row; rows above and below the real axis must agree, and points
   found inside must really be so where that is known (the main cardioid and the disc left of it). */
#include "kernel.h"

static uint32_t escape(float cx, float cy, uint32_t limit) {
  float x = 0, y = 0;
  uint32_t k = 0;
  while (k < limit && x * x + y * y <= 4.0f) {
    float t = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = t;
    k++;
  }
  return k;
}

static float point(uint32_t i, uint32_t n, float half) { return (2.0f * (float)i - (float)(n - 1)) * (half / (float)n); }

/* Sum of the iterations in one row of the picture. */
static uint32_t one_row(uint32_t row, uint32_t n, uint32_t limit, uint64_t *sum) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = escape(point(i, n, 1.5f) - 0.75f, point(row, n, 1.25f), limit);
    total += k;
    *sum = sum_value(*sum, k);
  }
  return total;
}

EXPORT(mandel) uint32_t mandel(uint32_t n, uint32_t limit) {
  uint32_t total = 0;
  for (uint32_t row = 0; row < n; row++)
    for (uint32_t i = 0; i < n; i++) total += escape(point(i, n, 1.5f) - 0.75f, point(row, n, 1.25f), limit);
  return total;
}

KERNEL(300) {
  const uint32_t limit = 200;
  uint32_t total = mandel(n, limit), again = 0;
  uint64_t sum = SUM0;
  int ok = 1;
  for (uint32_t row = 0; row < (n + 1) / 2; row++) {
    uint64_t above = SUM0, below = SUM0;
    uint32_t t = one_row(row, n, limit, &above), u = one_row(n - 1 - row, n, limit, &below);
    again += row == n - 1 - row ? t : t + u;
    sum = sum_value(sum, above);
    ok &= above == below;
  }
  uint32_t inside = 0;
  for (uint32_t row = 0; row < n; row++)
    for (uint32_t i = 0; i < n; i++) {
      float x = point(i, n, 1.5f) - 0.75f, y = point(row, n, 1.25f);
      float q = (x - 0.25f) * (x - 0.25f) + y * y;
      if (q * (q + x - 0.25f) < 0.249f * y * y || (x + 1) * (x + 1) + y * y < 0.062f) {
        inside++;
        ok &= escape(x, y, limit) == limit;
      }
    }
  figure("iterations", total);
  figure("known inside", inside);
  return verdict("mandel", n, sum, ok && total == again);
}
