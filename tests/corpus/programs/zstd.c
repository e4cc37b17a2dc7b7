/* Zstandard: packs n bytes of text at four levels, with a dictionary trained on it and without any pattern, and unpacks
   them again; all of it must come back, and damage must be noticed. */
#include "driver.h"
#include "zdict.h"
#include "zstd.h"

/* The training of dictionaries reports its progress by the clock, which this libc lacks. */
long long clock(void) { return 0; }

static uint64_t sum = SUM0;

static int round_trip(const uint8_t *text, uint32_t n, int level, const void *words, size_t words_len) {
  size_t bound = ZSTD_compressBound(n);
  uint8_t *packed = malloc(bound), *back = malloc(n + 1);
  ZSTD_CCtx *in = ZSTD_createCCtx();
  ZSTD_DCtx *out = ZSTD_createDCtx();
  int ok = packed != 0 && back != 0 && in != 0 && out != 0;
  ok = ok && !ZSTD_isError(ZSTD_CCtx_setParameter(in, ZSTD_c_compressionLevel, level));
  ok = ok && !ZSTD_isError(ZSTD_CCtx_setParameter(in, ZSTD_c_checksumFlag, 1));
  ok = ok && !ZSTD_isError(ZSTD_CCtx_loadDictionary(in, words, words_len));
  ok = ok && !ZSTD_isError(ZSTD_DCtx_loadDictionary(out, words, words_len));
  size_t packed_len = ok ? ZSTD_compress2(in, packed, bound, text, n) : 0;
  ok = ok && !ZSTD_isError(packed_len);
  ok = ok && ZSTD_decompressDCtx(out, back, n, packed, packed_len) == n && memcmp(text, back, n) == 0;
  if (ok) {
    out_str("level ");
    out_num((uint64_t)level, 10, 1);
    figure(words_len ? " packed, dictionary" : " packed", packed_len);
    sum = sum_bytes(sum, packed, (uint32_t)packed_len);
    packed[packed_len - 1] ^= 1; /* within the checksum of the whole */
    ok = ZSTD_isError(ZSTD_decompressDCtx(out, back, n, packed, packed_len));
  }
  ZSTD_freeCCtx(in);
  ZSTD_freeDCtx(out);
  free(packed);
  free(back);
  return ok;
}

int main(int argc, char **argv) {
  uint32_t n = size_argument(argc, argv, 400000);
  char *text = malloc(n + 1);
  if (text == 0 || n < 20000) return 3;
  fill_text(text, n, 5);
  uint8_t *bytes = (uint8_t *)text;
  int ok = round_trip(bytes, n, 1, 0, 0) & round_trip(bytes, n, 5, 0, 0);
  ok &= round_trip(bytes, n / 4, 12, 0, 0) & round_trip(bytes, n / 8, 19, 0, 0);
  uint8_t words[4096];
  size_t sizes[64];
  for (int i = 0; i < 64; i++) sizes[i] = n / 128;
  size_t words_len = ZDICT_trainFromBuffer(words, sizeof words, text, sizes, 64);
  ok &= !ZDICT_isError(words_len);
  if (ok) ok = round_trip(bytes + n / 2, n / 16, 3, words, words_len);
  uint64_t chance = random_seed(29);
  for (uint32_t i = 0; i < n / 8; i++) bytes[i] = (uint8_t)random_next(&chance);
  ok &= round_trip(bytes, n / 8, 3, 0, 0);
  free(text);
  return verdict("zstd", n, sum, ok);
}
