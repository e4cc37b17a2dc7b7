/* Arguments, environment, random bytes, descriptors, and the status of the program. */
#include "say.h"
#include <stdlib.h>
#include <fcntl.h>
#include <sys/stat.h>

extern char **environ;

int main(int argc, char **argv) {
  struct stat s;
  unsigned char random[1000] = {0};
  int set = 0, different = 0;
  for (int i = 1; i < argc; i++) {
    say_text(argv[i]);
    say_text("\n");
  }
  for (char **e = environ; *e; e++) {
    say_text(*e);
    say_text("\n");
  }
  say("absent", getenv("ABSENT") != 0);
  say("empty", getenv("EMPTY") && !*getenv("EMPTY"));
  /* At most 256 bytes in one call. */
  for (int i = 0; i < 1000; i += 250) outcome("getentropy", getentropy(random + i, 250));
  for (int i = 0; i < 1000; i++) set += __builtin_popcount(random[i]);
  for (int i = 0; i < 250; i++) different += random[i] != random[i + 250];
  say("bits", set > 3600 && set < 4400);
  say("different", different > 200);
  say("terminal", isatty(1));
  outcome("seek", lseek(0, 0, SEEK_CUR));
  outcome("pread", pread(0, random, 1, 0));
  outcome("stat", fstat(1, &s));
  outcome("flags", fcntl(0, F_GETFL) & O_NONBLOCK);
  outcome("read", read(0, random, 4));
  outcome("read", read(0, random, 4));
  outcome("read", read(0, random, 4));
  outcome("write to input", write(0, "x", 1));
  outcome("close", close(0));
  outcome("read closed", read(0, random, 1));
  outcome("bad", close(55));
  exit(argc > 1 ? atoi(argv[1]) : 0);
}
