/* Heat in a square plate: n Jacobi sweeps in f64 over a grid with a hot upper edge. Both the plate and the order of
   additions are symmetric, so the left half must mirror the right half exactly. */
#include "kernel.h"

enum { SIDE = 66 };
static double now[SIDE * SIDE], next[SIDE * SIDE];

/* Returns the sum of all temperatures after `sweeps` sweeps with the given hot edge. */
EXPORT(stencil) double stencil(uint32_t sweeps, double hot) {
  for (int i = 0; i < SIDE * SIDE; i++) now[i] = next[i] = i < SIDE ? hot : 0;
  for (uint32_t k = 0; k < sweeps; k++) {
    for (int y = 1; y < SIDE - 1; y++)
      for (int x = 1; x < SIDE - 1; x++)
        next[y * SIDE + x] = 0.25 * ((now[y * SIDE + x - 1] + now[y * SIDE + x + 1]) +
                                     (now[(y - 1) * SIDE + x] + now[(y + 1) * SIDE + x]));
    for (int y = 1; y < SIDE - 1; y++)
      for (int x = 1; x < SIDE - 1; x++) now[y * SIDE + x] = next[y * SIDE + x];
  }
  double total = 0;
  for (int i = 0; i < SIDE * SIDE; i++) total += now[i];
  return total;
}

KERNEL(3000) {
  double total = stencil(n, 100);
  int ok = 1;
  for (int y = 0; y < SIDE; y++)
    for (int x = 0; x < SIDE; x++) {
      double t = now[y * SIDE + x];
      ok &= t >= 0 && t <= 100 && t == now[y * SIDE + SIDE - 1 - x];
      if (y > 0 && y < SIDE - 1 && x > 0 && x < SIDE - 1) ok &= now[(y - 1) * SIDE + x] >= t;
    }
  figure_f("total", total);
  figure_f("centre", now[SIDE / 2 * SIDE + SIDE / 2]);
  return verdict("stencil", n, sum_bytes(SUM0, now, sizeof now), ok);
}
