// Four integrators of a function that they call through a pointer. `direct_*` are the same loops
// with the call of one function written by hand.
//
//   clang-19 --target=wasm32 -O2 -nostdlib -Wl,--no-entry -Wl,--strip-all -o feval.wasm feval.c

#define EXPORT(name) __attribute__((export_name(name), noinline))

typedef double (*Slope)(double t, double y);

__attribute__((noinline)) static double decay(double t, double y) { return t - 2.0 * y; }
__attribute__((noinline)) static double wave(double t, double y) { return y * (1.0 - y) - 0.25 * t; }
__attribute__((noinline)) static double well(double t, double y) {
    double shifted = y - 3.0;
    return shifted * shifted + t;
}

static const Slope functions[] = {decay, wave, well};

// One step of each integrator.
#define EULER(F) y += h * F(t, y)
#define MIDPOINT(F) y += h * F(t + 0.5 * h, y + 0.5 * h * F(t, y))
#define RUNGE_KUTTA(F)                          \
    double a = F(t, y);                         \
    double b = F(t + 0.5 * h, y + 0.5 * h * a); \
    double c = F(t + 0.5 * h, y + 0.5 * h * b); \
    double d = F(t + h, y + h * c);             \
    y += h / 6.0 * (a + 2.0 * b + 2.0 * c + d)

#define LOOP(STEP, F)                                       \
    double h = 1.0 / n, t = 0.0;                            \
    for (unsigned i = 0; i < n; i++) { STEP(F); t += h; }   \
    return y

EXPORT("euler") double euler(unsigned of, double y, unsigned n) {
    Slope f = functions[of];
    LOOP(EULER, f);
}
EXPORT("direct_euler") double direct_euler(unsigned of, double y, unsigned n) { LOOP(EULER, decay); }

EXPORT("midpoint") double midpoint(unsigned of, double y, unsigned n) {
    Slope f = functions[of];
    LOOP(MIDPOINT, f);
}
EXPORT("direct_midpoint") double direct_midpoint(unsigned of, double y, unsigned n) {
    LOOP(MIDPOINT, decay);
}

EXPORT("runge_kutta") double runge_kutta(unsigned of, double y, unsigned n) {
    Slope f = functions[of];
    LOOP(RUNGE_KUTTA, f);
}
EXPORT("direct_runge_kutta") double direct_runge_kutta(unsigned of, double y, unsigned n) {
    LOOP(RUNGE_KUTTA, decay);
}

// Simulated annealing: a worse place is taken with a chance that falls with the temperature. The
// chance is a rational function in the place of an exponential.
#define ANNEAL(F)                                                       \
    double heat = 1.0, least = F(0.0, y);                               \
    unsigned seed = 1;                                                  \
    for (unsigned i = 0; i < n; i++) {                                  \
        seed = seed * 1664525u + 1013904223u;                           \
        double there = y + ((double)(seed >> 8) / 8388608.0 - 1.0);     \
        double level = F(0.0, there);                                   \
        seed = seed * 1664525u + 1013904223u;                           \
        double chance = (double)(seed >> 8) / 16777216.0;               \
        double worse = (level - least) / heat;                          \
        if (worse <= 0.0 || chance * (1.0 + worse * (1.0 + worse)) < 1.0) { \
            y = there;                                                  \
            least = level;                                              \
        }                                                               \
        heat = heat * 0.9999 + 0.0001;                                  \
    }                                                                   \
    return y

EXPORT("anneal") double anneal(unsigned of, double y, unsigned n) {
    Slope f = functions[of];
    ANNEAL(f);
}
EXPORT("direct_anneal") double direct_anneal(unsigned of, double y, unsigned n) { ANNEAL(decay); }
