// A program whose instructions have lines in two files.
#include "spans.h"

static unsigned cells[64];

__attribute__((noinline)) unsigned fill(unsigned count, unsigned seed) {
  unsigned sum = 0;
  for (unsigned i = 0; i < count; i++) {
    cells[i % 64] = mixed(seed, i);
    sum += cells[i % 64] / (seed + 1);
  }
  return sum;
}

static unsigned hidden(unsigned a, unsigned b) { return a % b; }

unsigned (*volatile chosen)(unsigned, unsigned) = hidden;

__attribute__((export_name("spans"))) unsigned spans(unsigned count) {
  unsigned sum = fill(count, 3);
  if (sum > 100)
    sum -= chosen(sum, count);
  return sum;
}
