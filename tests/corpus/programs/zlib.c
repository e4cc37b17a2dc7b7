/* zlib: packs n bytes of text at three levels, a quarter of them through a stream in small pieces, and bytes without any
   pattern, and unpacks them again; all of it must come back, and damage must be noticed. */
#include "driver.h"
#include "zlib.h"

static uint64_t sum = SUM0;

static int round_trip(const uint8_t *text, uint32_t n, int level) {
  uLongf packed_len = compressBound(n), back_len = n;
  uint8_t *packed = malloc(packed_len), *back = malloc(n + 1);
  int ok = packed != 0 && back != 0;
  ok = ok && compress2(packed, &packed_len, text, n, level) == Z_OK;
  ok = ok && uncompress(back, &back_len, packed, packed_len) == Z_OK;
  ok = ok && back_len == n && memcmp(text, back, n) == 0;
  ok = ok && crc32(0, text, n) == crc32_combine(crc32(0, back, n / 3), crc32(0, back + n / 3, n - n / 3), n - n / 3);
  if (ok) {
    out_str("level ");
    out_num((uint64_t)level, 10, 1);
    figure(" packed", packed_len);
    sum = sum_bytes(sum, packed, (uint32_t)packed_len);
    packed[packed_len - 1] ^= 1; /* within the checksum of the whole */
    back_len = n;
    ok = uncompress(back, &back_len, packed, packed_len) == Z_DATA_ERROR;
  }
  free(packed);
  free(back);
  return ok;
}

/* The same through streams, raw, with little memory, as much at a time as fits a small buffer. */
static int streamed(uint8_t *text, uint32_t n, int strategy) {
  z_stream in = {0}, out = {0};
  uint8_t piece[257], back[300];
  uint32_t packed = 0, at = 0;
  int status = Z_OK, ok;
  ok = deflateInit2(&in, 6, Z_DEFLATED, -12, 4, strategy) == Z_OK && inflateInit2(&out, -12) == Z_OK;
  in.next_in = text;
  in.avail_in = n;
  while (ok && status != Z_STREAM_END) {
    in.next_out = piece;
    in.avail_out = sizeof piece;
    ok = deflate(&in, Z_FINISH) != Z_STREAM_ERROR;
    out.next_in = piece;
    out.avail_in = sizeof piece - in.avail_out;
    packed += out.avail_in;
    sum = sum_bytes(sum, piece, out.avail_in);
    do {
      out.next_out = back;
      out.avail_out = sizeof back;
      status = inflate(&out, Z_NO_FLUSH);
      uint32_t got = sizeof back - out.avail_out;
      ok = ok && (status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR);
      ok = ok && at + got <= n && memcmp(text + at, back, got) == 0;
      at += got;
    } while (ok && out.avail_out == 0);
  }
  figure(strategy == Z_HUFFMAN_ONLY ? "codes alone, streamed" : "streamed", packed);
  return deflateEnd(&in) == Z_OK && inflateEnd(&out) == Z_OK && ok && at == n;
}

int main(int argc, char **argv) {
  uint32_t n = size_argument(argc, argv, 2000000);
  char *text = malloc(n + 1);
  if (text == 0) return 3;
  fill_text(text, n, 3);
  uint8_t *bytes = (uint8_t *)text;
  int ok = round_trip(bytes, n, 1) & round_trip(bytes, n, 6) & round_trip(bytes, n / 4, 9);
  ok &= streamed(bytes, n / 4, Z_DEFAULT_STRATEGY) & streamed(bytes, n / 8, Z_HUFFMAN_ONLY);
  uint64_t chance = random_seed(23);
  for (uint32_t i = 0; i < n / 8; i++) bytes[i] = (uint8_t)random_next(&chance);
  ok &= round_trip(bytes, n / 8, 6);
  figure("adler", adler32(1, bytes, n));
  free(text);
  return verdict("zlib", n, sum, ok);
}
