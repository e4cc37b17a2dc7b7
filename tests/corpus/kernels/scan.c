/* A scanner for C-like text as a state machine over bytes, one switch on the state. The text is made up as we go, and
   whoever makes it up keeps count of what the scanner has to find. */
#include "kernel.h"

enum { NAMES, NUMBERS, STRINGS, COMMENTS, MARKS, LINES, KINDS };
static uint32_t made[KINDS], found[KINDS], letters;
static char *text;
static uint32_t length;

static void put(char c) { text[length++] = c; }

static void make_text(uint32_t n, uint32_t seed) {
  uint64_t s = random_seed(seed);
  text = arena_get(n + 64);
  length = 0;
  for (int k = 0; k < KINDS; k++) made[k] = 0;
  while (length < n) {
    uint32_t r = random_next(&s), len = 1 + (r >> 8) % 12, kind = r % 16;
    if (kind < 6) {
      made[NAMES]++;
      put((char)('a' + (r >> 16) % 26));
      while (len-- > 1) put("abcdefghijklmnopqrstuvwxyz_0123456789"[random_next(&s) % 37]);
    } else if (kind < 9) {
      made[NUMBERS]++;
      while (len-- > 0) put((char)('0' + random_next(&s) % 10));
    } else if (kind < 11) {
      made[STRINGS]++;
      put('"');
      while (len-- > 0) {
        uint32_t c = random_next(&s) % 30;
        if (c == 28 || c == 29) {
          put('\\');
          put(c == 28 ? '"' : '\\');
        } else put(c == 27 ? '/' : c == 26 ? '*' : (char)('a' + c));
      }
      put('"');
    } else if (kind == 11) {
      made[COMMENTS]++;
      put('/');
      put('*');
      put('!');
      while (len-- > 0) put("ab \"/*"[random_next(&s) % (text[length - 1] == '*' ? 4 : 6)]); /* not its end */
      put('*');
      put('*');
      put('/');
    } else if (kind < 14) {
      made[MARKS]++;
      put("+-=;(){}/"[random_next(&s) % 9]);
    }
    made[LINES] += r >> 28 == 0;
    put(r >> 28 == 0 ? '\n' : ' ');
  }
}

static int is_letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_digit(int c) { return c >= '0' && c <= '9'; }

static void run_scanner(void) {
  enum { BETWEEN, NAME, NUMBER, STRING, ESCAPED, SLASH, COMMENT, STAR } state = BETWEEN;
  for (int k = 0; k < KINDS; k++) found[k] = 0;
  letters = 0;
  for (uint32_t i = 0; i < length; i++) {
    int c = text[i];
    letters += (uint32_t)is_letter(c);
    found[LINES] += c == '\n';
    switch (state) {
      case NAME:
        if (is_letter(c) || is_digit(c)) break;
        goto between;
      case NUMBER:
        if (is_digit(c)) break;
        goto between;
      case SLASH:
        if (c == '*') {
          found[COMMENTS]++;
          state = COMMENT;
          break;
        }
        found[MARKS]++;
        goto between;
      case BETWEEN:
      between:
        state = BETWEEN;
        if (is_letter(c)) {
          found[NAMES]++;
          state = NAME;
        } else if (is_digit(c)) {
          found[NUMBERS]++;
          state = NUMBER;
        } else {
          switch (c) {
            case '"': found[STRINGS]++; state = STRING; break;
            case '/': state = SLASH; break;
            case ' ': case '\n': break;
            default: found[MARKS]++; break;
          }
        }
        break;
      case STRING: state = c == '"' ? BETWEEN : c == '\\' ? ESCAPED : STRING; break;
      case ESCAPED: state = STRING; break;
      case COMMENT: state = c == '*' ? STAR : COMMENT; break;
      case STAR: state = c == '/' ? BETWEEN : c == '*' ? STAR : COMMENT; break;
    }
  }
}

/* Makes at least n bytes of text and returns how many things are in it. */
EXPORT(scan) uint32_t scan(uint32_t n, uint32_t seed) {
  arena_reset();
  make_text(n, seed);
  run_scanner();
  return found[NAMES] + found[NUMBERS] + found[STRINGS] + found[COMMENTS] + found[MARKS];
}

KERNEL(2000000) {
  scan(n, 17);
  uint64_t sum = sum_bytes(SUM0, text, length);
  int ok = 1;
  for (int k = 0; k < KINDS; k++) {
    ok &= made[k] == found[k];
    sum = sum_value(sum, found[k]);
  }
  figure("names", found[NAMES]);
  figure("numbers", found[NUMBERS]);
  figure("strings", found[STRINGS]);
  figure("comments", found[COMMENTS]);
  figure("marks", found[MARKS]);
  figure("letters", letters);
  return verdict("scan", n, sum, ok);
}
