/* CRC-32 by table, FNV-1a in 64 bits and Adler-32 over n pseudo-random bytes; checked by published values, by CRC-32
   without a table, and by Adler-32 in closed form. */
#include "kernel.h"

static uint32_t table[256];

static void make_table(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    table[i] = c;
  }
}

static uint32_t crc32(const uint8_t *p, uint32_t n) {
  uint32_t c = ~0u;
  for (uint32_t i = 0; i < n; i++) c = c >> 8 ^ table[(c ^ p[i]) & 255];
  return ~c;
}

static uint32_t crc32_bitwise(const uint8_t *p, uint32_t n) {
  uint32_t c = ~0u;
  while (n-- > 0) {
    c ^= *p++;
    for (int k = 0; k < 8; k++) c = c >> 1 ^ (0xedb88320u & -(c & 1));
  }
  return ~c;
}

static uint32_t adler32(const uint8_t *p, uint32_t n) {
  uint32_t a = 1, b = 0;
  for (uint32_t i = 0; i < n; i++) {
    a = (a + p[i]) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

static uint32_t adler32_closed(const uint8_t *p, uint32_t n) {
  uint64_t a = 1, b = n;
  for (uint32_t i = 0; i < n; i++) {
    a += p[i];
    b = (b + (uint64_t)(n - i) * p[i]) % 65521;
  }
  return (uint32_t)(b % 65521) << 16 | (uint32_t)(a % 65521);
}

static uint8_t *data;

/* Returns the three hashes of n bytes made from `seed`, folded into one. */
EXPORT(hash) uint64_t hash(uint32_t n, uint32_t seed) {
  arena_reset();
  make_table();
  data = arena_get(n);
  uint64_t s = random_seed(seed);
  for (uint32_t i = 0; i < n; i++) data[i] = (uint8_t)random_next(&s);
  return sum_bytes(SUM0, data, n) ^ ((uint64_t)adler32(data, n) << 32 | crc32(data, n));
}

KERNEL(3000000) {
  uint64_t sum = hash(n, 1);
  uint32_t crc = crc32(data, n), adler = adler32(data, n);
  const uint8_t *digits = (const uint8_t *)"123456789";
  int ok = crc32(digits, 9) == 0xcbf43926u && adler32(digits, 9) == 0x091e01deu &&
           sum_bytes(SUM0, "foobar", 6) == 0x85944171f73967e8u;
  ok &= crc == crc32_bitwise(data, n) && adler == adler32_closed(data, n);
  figure("crc32", crc);
  figure("adler32", adler);
  return verdict("hash", n, sum, ok);
}
