/* Six bodies under gravity in f64, by leapfrog steps; energy must nearly be kept and momentum stay nearly zero. */
#include "kernel.h"

enum { BODIES = 6 };
struct body { double x, y, z, vx, vy, vz, mass; };
static struct body bodies[BODIES];
static const double dt = 1.0 / 1024;

static void set_up(void) {
  uint64_t s = random_seed(3);
  double px = 0, py = 0, pz = 0;
  for (int i = 1; i < BODIES; i++) {
    struct body *b = &bodies[i];
    double r = 1 + i * 0.75, t = (double)(random_next(&s) % 2000) / 1000 - 1, u = __builtin_sqrt(1 - t * t);
    double speed = __builtin_sqrt(20 / r);
    *b = (struct body){r * t, r * u, 0.01 * i, -speed * u, speed * t, 0.02 * i, 0.01 + 0.003 * i};
    px += b->vx * b->mass;
    py += b->vy * b->mass;
    pz += b->vz * b->mass;
  }
  bodies[0] = (struct body){0, 0, 0, -px / 20, -py / 20, -pz / 20, 20};
}

static double energy(void) {
  double e = 0;
  for (int i = 0; i < BODIES; i++) {
    struct body *a = &bodies[i];
    e += 0.5 * a->mass * (a->vx * a->vx + a->vy * a->vy + a->vz * a->vz);
    for (int j = i + 1; j < BODIES; j++) {
      struct body *b = &bodies[j];
      double dx = a->x - b->x, dy = a->y - b->y, dz = a->z - b->z;
      e -= a->mass * b->mass / __builtin_sqrt(dx * dx + dy * dy + dz * dz);
    }
  }
  return e;
}

static void push(double t) {
  for (int i = 0; i < BODIES; i++)
    for (int j = i + 1; j < BODIES; j++) {
      struct body *a = &bodies[i], *b = &bodies[j];
      double dx = a->x - b->x, dy = a->y - b->y, dz = a->z - b->z;
      double d2 = dx * dx + dy * dy + dz * dz, f = t / (d2 * __builtin_sqrt(d2));
      a->vx -= dx * b->mass * f;
      a->vy -= dy * b->mass * f;
      a->vz -= dz * b->mass * f;
      b->vx += dx * a->mass * f;
      b->vy += dy * a->mass * f;
      b->vz += dz * a->mass * f;
    }
}

/* Returns the energy after `steps` steps from the start. */
EXPORT(nbody) double nbody(uint32_t steps) {
  set_up();
  push(dt / 2);
  for (uint32_t k = 0; k < steps; k++) {
    for (int i = 0; i < BODIES; i++) {
      bodies[i].x += dt * bodies[i].vx;
      bodies[i].y += dt * bodies[i].vy;
      bodies[i].z += dt * bodies[i].vz;
    }
    push(k + 1 < steps ? dt : dt / 2);
  }
  return energy();
}

KERNEL(300000) {
  set_up();
  double before = energy(), after = nbody(n);
  double drift = __builtin_fabs((after - before) / before), momentum = 0;
  uint64_t sum = SUM0;
  for (int i = 0; i < BODIES; i++) {
    momentum += bodies[i].mass * bodies[i].vx;
    sum = sum_value(sum, bits_of(bodies[i].x));
    sum = sum_value(sum, bits_of(bodies[i].vy));
  }
  figure_f("energy before", before);
  figure_f("energy after", after);
  return verdict("nbody", n, sum, drift < 1e-3 && __builtin_fabs(momentum) < 1e-9);
}
