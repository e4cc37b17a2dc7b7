/* What program drivers share: the size argument and text to work on. See ../kernels/out.h for the rest. */
#include <stdlib.h>
#include <string.h>
#include "../kernels/out.h"

static uint32_t size_argument(int argc, char **argv, uint32_t dflt) {
  return argc > 1 ? (uint32_t)strtoul(argv[1], 0, 10) : dflt;
}

/* n bytes that look somewhat like prose: words from a small vocabulary, common ones more often, now and then a passage
   that has been seen before. */
static inline void fill_text(char *text, uint32_t n, uint32_t seed) {
  uint64_t s = random_seed(seed);
  char words[512][12];
  uint32_t lengths[512];
  for (int w = 0; w < 512; w++) {
    lengths[w] = 1 + random_next(&s) % 6 + random_next(&s) % 6;
    for (uint32_t i = 0; i < lengths[w]; i++) words[w][i] = "etaoinshrdlucmfwypvbgk"[random_next(&s) % (6 + 16 * (i & 1))];
  }
  uint32_t at = 0, column = 0;
  while (at < n) {
    uint32_t r = random_next(&s);
    if (r % 40 == 0 && at > 5000) {
      uint32_t from = random_next(&s) % (at - 200), len = 20 + (r >> 16) % 180;
      while (len-- > 0 && at < n) text[at++] = text[from++];
      continue;
    }
    uint32_t w = (r >> 8) % 512 * ((r >> 20) % 512) / 512;
    for (uint32_t i = 0; i < lengths[w] && at < n; i++) text[at++] = words[w][i];
    column += lengths[w] + 1;
    if (at < n) text[at++] = column > 70 ? '\n' : ' ';
    if (column > 70) column = 0;
  }
}
