/* Prints without stdio, which would make the programs ten times as large. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

static void say_text(const char *text) { write(1, text, strlen(text)); }

/* One line: a label and a number. */
static void say(const char *label, long long value) {
  char digits[24], *at = digits + sizeof digits;
  unsigned long long rest = value < 0 ? -(unsigned long long)value : (unsigned long long)value;
  *--at = '\n';
  do *--at = '0' + rest % 10; while (rest /= 10);
  if (value < 0) *--at = '-';
  *--at = ' ';
  say_text(label);
  write(1, at, digits + sizeof digits - at);
}

/* The result of a call that returns a negative number for an error: the number, or the error. */
static long long outcome(const char *label, long long result) {
  if (result < 0) {
    say_text("failed ");
    say(label, errno);
  } else {
    say(label, result);
  }
  return result;
}
