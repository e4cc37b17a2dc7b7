/* Counts lines, words and distinct words of what stands on stdin, n times over. Distinct words go to a hash table with
   open addressing; a count that walks backwards, and comparing all words found, check the result. */
#include "kernel.h"

struct count { uint32_t lines, words, distinct, longest; };
struct word { uint32_t at, len, times; };

static struct word *slots;
static uint32_t slot_mask;

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static int same(const char *text, uint32_t a, uint32_t b, uint32_t len) {
  for (uint32_t i = 0; i < len; i++)
    if (text[a + i] != text[b + i]) return 0;
  return 1;
}

static int enter(const char *text, uint32_t at, uint32_t len) {
  uint32_t i = (uint32_t)sum_bytes(SUM0, text + at, len);
  for (;; i++) {
    struct word *w = &slots[i & slot_mask];
    if (w->times == 0) *w = (struct word){at, len, 0};
    if (w->len == len && same(text, w->at, at, len)) return w->times++ == 0;
  }
}

static struct count count_words(const char *text, uint32_t len) {
  struct count c = {0, 0, 0, 0};
  for (uint32_t i = 0; i <= slot_mask; i++) slots[i].times = 0;
  uint32_t i = 0;
  while (i < len) {
    if (is_space(text[i])) {
      c.lines += text[i++] == '\n';
      continue;
    }
    uint32_t from = i;
    while (i < len && !is_space(text[i])) i++;
    c.words++;
    c.distinct += (uint32_t)enter(text, from, i - from);
    if (i - from > c.longest) c.longest = i - from;
  }
  return c;
}

/* Room for as many words as `len` bytes can hold, at most half full. */
static void make_slots(uint32_t len) {
  slot_mask = 15;
  while (slot_mask < len + 1) slot_mask = 2 * slot_mask + 1;
  slots = arena_get((slot_mask + 1) * sizeof *slots);
}

/* The same for n bytes of made-up text, without stdin: words in the upper half, distinct ones in the lower half. */
EXPORT(words) uint64_t words(uint32_t n, uint32_t seed) {
  arena_reset();
  char *text = arena_get(n);
  uint64_t s = random_seed(seed);
  for (uint32_t i = 0; i < n; i++) text[i] = "aaabbcde  \n"[random_next(&s) % 11];
  make_slots(n);
  struct count c = count_words(text, n);
  return (uint64_t)c.words << 32 | c.distinct;
}

KERNEL(1000) {
  arena_reset();
  uint32_t len;
  char *text = read_stdin(&len);
  make_slots(len);
  struct count c = count_words(text, len);
  int ok = 1;
  for (uint32_t k = 1; k < n; k++) {
    struct count d = count_words(text, len);
    ok &= c.words == d.words && c.distinct == d.distinct;
  }
  uint32_t words = 0, lines = 0, listed = 0, distinct = 0;
  for (uint32_t i = len; i-- > 0;) {
    lines += text[i] == '\n';
    words += !is_space(text[i]) && (i + 1 == len || is_space(text[i + 1]));
  }
  uint64_t sum = sum_bytes(SUM0, text, len);
  for (uint32_t i = 0; i <= slot_mask; i++) {
    if (slots[i].times == 0) continue;
    listed += slots[i].times;
    distinct++;
    sum = sum_value(sum, (uint64_t)slots[i].at << 32 | slots[i].times);
    for (uint32_t j = 0; j < i; j++)
      if (slots[j].times != 0 && slots[j].len == slots[i].len) ok &= !same(text, slots[i].at, slots[j].at, slots[i].len);
  }
  figure("bytes", len);
  figure("lines", c.lines);
  figure("words", c.words);
  figure("distinct", c.distinct);
  figure("longest", c.longest);
  ok &= words == c.words && lines == c.lines && listed == words && distinct == c.distinct;
  return verdict("words", n, sum, ok);
}
