/* A bytecode interpreter with one switch in a loop: a register machine runs two programs, whose results are compared
   with the same computed in C. */
#include "kernel.h"

/* op a b c: registers a, b, c, unless stated otherwise */
enum { HALT, SET /* a = constant b */, COPY, ADD, SUB, MUL, REM, XOR, SHR, LESS, LOAD /* a = cell[b] */,
       STORE /* cell[b] = a */, JUMP /* to a */, IF /* a: go to b */, UNLESS /* a: go to b */ };
struct op { uint8_t code; int8_t a, b, c; };
enum { CELLS = 256 };

/* Register 0 holds n at the start, register 1 the result at the end. */
static const struct op primes[] = { /* how many primes are below n, by trial division */
  {SET, 1, 0, 0}, {SET, 2, 2, 0}, {SET, 9, 1, 0},
  /* 3 */ {LESS, 3, 2, 0}, {UNLESS, 3, 16, 0}, {SET, 4, 2, 0},
  /* 6 */ {MUL, 5, 4, 4}, {LESS, 3, 2, 5}, {IF, 3, 13, 0}, {REM, 5, 2, 4},
  {UNLESS, 5, 14, 0}, {ADD, 4, 4, 9}, {JUMP, 6, 0, 0},
  /* 13 */ {ADD, 1, 1, 9},
  /* 14 */ {ADD, 2, 2, 9}, {JUMP, 3, 0, 0},
  /* 16 */ {HALT, 0, 0, 0},
};
static const struct op tally[] = { /* n steps of a generator, tallied in the cells, then all cells folded */
  {SET, 1, 0, 0}, {SET, 2, 1, 0}, {SET, 3, 109, 0}, {SET, 4, 89, 0}, {SET, 9, 1, 0},
  {SET, 8, 16, 0}, {SET, 10, 0, 0},
  /* 7 */ {LESS, 5, 10, 0}, {UNLESS, 5, 17, 0}, {MUL, 2, 2, 3}, {ADD, 2, 2, 4}, {SHR, 6, 2, 8},
  {LOAD, 7, 6, 0}, {ADD, 7, 7, 9}, {STORE, 7, 6, 0}, {ADD, 10, 10, 9}, {JUMP, 7, 0, 0},
  /* 17 */ {SET, 10, 0, 0}, {SET, 11, 127, 0}, {ADD, 11, 11, 11}, {ADD, 11, 11, 9}, {ADD, 11, 11, 9},
  /* 22 */ {LESS, 5, 10, 11}, {UNLESS, 5, 31, 0}, {LOAD, 7, 10, 0},
  {MUL, 1, 1, 3}, {XOR, 1, 1, 7}, {SUB, 1, 1, 10}, {COPY, 12, 10, 0}, {ADD, 10, 12, 9}, {JUMP, 22, 0, 0},
  /* 31 */ {HALT, 0, 0, 0},
};

static uint32_t cells[CELLS];
static uint64_t executed;

static uint32_t interpret(const struct op *program, uint32_t n) {
  uint32_t r[16] = {n}, pc = 0;
  for (uint32_t i = 0; i < CELLS; i++) cells[i] = 0;
  for (;;) {
    struct op o = program[pc++];
    executed++;
    switch (o.code) {
      case SET: r[o.a] = (uint32_t)o.b; break;
      case COPY: r[o.a] = r[o.b]; break;
      case ADD: r[o.a] = r[o.b] + r[o.c]; break;
      case SUB: r[o.a] = r[o.b] - r[o.c]; break;
      case MUL: r[o.a] = r[o.b] * r[o.c]; break;
      case REM: r[o.a] = r[o.b] % r[o.c]; break;
      case XOR: r[o.a] = r[o.b] ^ r[o.c]; break;
      case SHR: r[o.a] = r[o.b] >> r[o.c]; break;
      case LESS: r[o.a] = r[o.b] < r[o.c]; break;
      case LOAD: r[o.a] = cells[r[o.b] % CELLS]; break;
      case STORE: cells[r[o.b] % CELLS] = r[o.a]; break;
      case JUMP: pc = (uint32_t)o.a; break;
      case IF: if (r[o.a] != 0) pc = (uint32_t)o.b; break;
      case UNLESS: if (r[o.a] == 0) pc = (uint32_t)o.b; break;
      case HALT: return r[1];
      default: __builtin_trap();
    }
  }
}

/* Runs program 0 (primes) or 1 (tally) for n. */
EXPORT(vm) uint32_t vm(uint32_t program, uint32_t n) { return interpret(program == 0 ? primes : tally, n); }

static uint32_t primes_in_c(uint32_t n) {
  uint32_t count = 0;
  for (uint32_t v = 2; v < n; v++) {
    uint32_t d = 2;
    while (d * d <= v && v % d != 0) d++;
    count += d * d > v;
  }
  return count;
}

static uint32_t tally_in_c(uint32_t n) {
  uint32_t v = 1, h = 0, count[CELLS];
  for (uint32_t i = 0; i < CELLS; i++) count[i] = 0;
  for (uint32_t i = 0; i < n; i++) {
    v = v * 109 + 89;
    count[(v >> 16) % CELLS]++;
  }
  for (uint32_t i = 0; i < CELLS; i++) h = ((h * 109) ^ count[i]) - i;
  return h;
}

KERNEL(60000) {
  uint32_t p = vm(0, n), t = vm(1, n);
  figure("primes", p);
  figure("tally", t);
  figure("executed", executed);
  return verdict("vm", n, sum_value(sum_value(SUM0, p), t), p == primes_in_c(n) && t == tally_in_c(n));
}
