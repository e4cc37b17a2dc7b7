/* Text out, reproducible numbers and checksums, for kernels and program drivers alike. Output goes straight to WASI's
   fd_write, so that no module drags in a libc printf several times its own size. */
#ifndef OUT_H
#define OUT_H
#include <stdint.h>

#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))
struct span { char *at; uint32_t len; };
WASI(fd_write) uint32_t wasi_fd_write(uint32_t fd, const struct span *spans, uint32_t count, uint32_t *done);

static char out_text[256];
static uint32_t out_len;

static inline void out_flush(void) {
  uint32_t at = 0;
  while (at < out_len) {
    struct span s = {out_text + at, out_len - at};
    uint32_t done = 0;
    if (wasi_fd_write(1, &s, 1, &done) != 0 || done == 0) __builtin_trap();
    at += done;
  }
  out_len = 0;
}

static inline void out_char(char c) {
  if (out_len == sizeof out_text) out_flush();
  out_text[out_len++] = c;
}

static inline void out_str(const char *s) {
  while (*s) out_char(*s++);
}

/* Unsigned, in decimal or hexadecimal, padded with zeros to `width`. */
static inline void out_num(uint64_t v, uint32_t base, uint32_t width) {
  char digits[20];
  uint32_t n = 0;
  while (v != 0 || n < width) {
    digits[n++] = "0123456789abcdef"[v % base];
    v /= base;
  }
  while (n > 0) out_char(digits[--n]);
}

static inline uint64_t bits_of(double v) {
  union { double f; uint64_t u; } x = {v};
  return x.u;
}

static inline void figure(const char *name, uint64_t v) {
  out_str(name);
  out_char(' ');
  out_num(v, 10, 1);
  out_char('\n');
}

/* Six decimals, cut off; values that do not fit are shown as their bits. */
static inline void figure_f(const char *name, double v) {
  out_str(name);
  out_char(' ');
  double m = v < 0 ? -v : v;
  if (m < 1e12) {
    uint64_t u = (uint64_t)(m * 1e6);
    if (v < 0) out_char('-');
    out_num(u / 1000000, 10, 1);
    out_char('.');
    out_num(u % 1000000, 10, 6);
  } else {
    out_str("bits ");
    out_num(bits_of(v), 16, 16);
  }
  out_char('\n');
}

/* The last line of every run. Returns the exit status. */
static inline int verdict(const char *name, uint32_t n, uint64_t sum, int ok) {
  out_str(name);
  out_char(' ');
  out_num(n, 10, 1);
  out_char(' ');
  out_num(sum, 16, 16);
  out_str(ok ? " OK\n" : " BAD\n");
  out_flush();
  return ok ? 0 : 1;
}

/* 64-bit FNV-1a, by bytes and by whole values. */
#define SUM0 0xcbf29ce484222325u
static inline uint64_t sum_bytes(uint64_t h, const void *data, uint32_t n) {
  const uint8_t *p = data;
  while (n-- > 0) h = (h ^ *p++) * 0x100000001b3u;
  return h;
}
static inline uint64_t sum_value(uint64_t h, uint64_t v) {
  for (int i = 0; i < 8; i++, v >>= 8) h = (h ^ (v & 255)) * 0x100000001b3u;
  return h;
}

/* xorshift64*, by Marsaglia and Vigna; `*s` must not be zero. */
static inline uint32_t random_next(uint64_t *s) {
  *s ^= *s >> 12;
  *s ^= *s << 25;
  *s ^= *s >> 27;
  return (uint32_t)(*s * 0x2545f4914f6cdd1du >> 32);
}
static inline uint64_t random_seed(uint32_t seed) { return (uint64_t)seed * 0x9e3779b97f4a7c15u | 1; }
#endif
