/* bzip2 (library part): packs n bytes of text and unpacks them again, and a quarter of them in small blocks, by the
   method that needs less memory; the text must come back, and damage to the smaller archive must be noticed. */
#include "driver.h"
#include "bzlib.h"

/* The library calls this on a failed assertion of its own. */
void bz_internal_error(int code) {
  figure("internal error", (uint64_t)code);
  out_flush();
  exit(3);
}

static uint64_t sum = SUM0;

static int round_trip(char *text, uint32_t n, int level) {
  unsigned packed_len = n + n / 100 + 600, back_len = n;
  char *packed = malloc(packed_len), *back = malloc(n + 1);
  int ok = packed != 0 && back != 0;
  ok = ok && BZ2_bzBuffToBuffCompress(packed, &packed_len, text, n, level, 0, 0) == BZ_OK;
  ok = ok && BZ2_bzBuffToBuffDecompress(back, &back_len, packed, packed_len, 0, level == 1) == BZ_OK;
  ok = ok && back_len == n && memcmp(text, back, n) == 0;
  if (ok) {
    out_str("level ");
    out_num((uint64_t)level, 10, 1);
    figure(" packed", packed_len);
    sum = sum_bytes(sum, packed, packed_len);
  }
  if (ok && level == 1) {
    packed[packed_len - 3] ^= 0x10; /* within the checksum of the whole */
    back_len = n;
    ok = BZ2_bzBuffToBuffDecompress(back, &back_len, packed, packed_len, 0, 0) == BZ_DATA_ERROR;
  }
  free(packed);
  free(back);
  return ok;
}

int main(int argc, char **argv) {
  uint32_t n = size_argument(argc, argv, 2000000);
  char *text = malloc(n + 1);
  if (text == 0) return 3;
  fill_text(text, n, 1);
  int ok = round_trip(text, n, 9) & round_trip(text, n / 4, 1);
  return verdict("bzip2", n, sum, ok);
}
