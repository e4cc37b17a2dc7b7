// The part of <stdio.h> that a program uses: it prints its checksum at its end. The printf of
// wasi-libc is larger than most of the programs.
#include <stdarg.h>
#include <unistd.h>

int printf(const char *format, ...) {
  char line[64];
  int length = 0;
  va_list args;
  va_start(args, format);
  for (; *format; format++) {
    if (length + 8 > (int)sizeof line) __builtin_trap();
    if (*format != '%') {
      line[length++] = *format;
      continue;
    }
    if (*++format != 'X') __builtin_trap();
    unsigned number = va_arg(args, unsigned);
    int shift = 28;
    while (shift > 0 && number >> shift == 0) shift -= 4;
    for (; shift >= 0; shift -= 4) line[length++] = "0123456789ABCDEF"[number >> shift & 15];
  }
  va_end(args);
  return write(1, line, length) == length ? length : -1;
}
