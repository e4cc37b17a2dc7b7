/* Files below the directory `work`: positions, sizes, times, names, lists. */
#include "say.h"
#include <dirent.h>
#include <stdio.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

static char buffer[200000];

static void contents(const char *label, const char *path) {
  int fd = open(path, O_RDONLY);
  if (fd < 0) { outcome(label, fd); return; }
  int got = outcome(label, read(fd, buffer, 64));
  if (got > 0) { write(1, buffer, got); say_text("|\n"); }
  close(fd);
}

static void kind(const char *label, const char *path, int follow) {
  struct stat s;
  int failed = follow ? stat(path, &s) : lstat(path, &s);
  if (failed) { outcome(label, -1); return; }
  say_text(label);
  say(S_ISDIR(s.st_mode) ? " directory" : S_ISREG(s.st_mode) ? " file" : S_ISLNK(s.st_mode) ? " link" : " other",
      S_ISDIR(s.st_mode) ? 0 : s.st_size);
}

static void positions(void) {
  int fd = open("work/a", O_RDWR | O_CREAT | O_TRUNC, 0666);
  say("create", fd >= 0);
  outcome("write", write(fd, "hello, world", 12));
  outcome("tell", lseek(fd, 0, SEEK_CUR));
  outcome("seek", lseek(fd, -5, SEEK_END));
  outcome("read", read(fd, buffer, 100));
  outcome("read at the end", read(fd, buffer, 100));
  outcome("seek before the start", lseek(fd, -1, SEEK_SET));
  outcome("pwrite", pwrite(fd, "HELL", 4, 0));
  outcome("pread", pread(fd, buffer, 5, 3));
  outcome("still at", lseek(fd, 0, SEEK_CUR));
  outcome("seek beyond", lseek(fd, 20, SEEK_SET));
  outcome("write there", write(fd, "!", 1));
  struct iovec two[2] = {{buffer, 3}, {buffer + 3, 4}};
  lseek(fd, 0, SEEK_SET);
  outcome("readv", readv(fd, two, 2));
  lseek(fd, 2, SEEK_SET);
  outcome("writev", writev(fd, two, 2));
  pwrite(fd, "HELLo, HE", 9, 0); /* A host may stop behind the first buffer. */
  outcome("ftruncate", ftruncate(fd, 9));
  outcome("sync", fsync(fd));
  outcome("datasync", fdatasync(fd));
  outcome("advise", posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
  outcome("flags", fcntl(fd, F_GETFL) & (O_APPEND | O_NONBLOCK));
  outcome("terminal", isatty(fd));
  struct stat s;
  outcome("stat", fstat(fd, &s));
  say("size", s.st_size);
  say("links", s.st_nlink);
  outcome("close", close(fd));
  outcome("close again", close(fd));
  contents("a", "work/a");
}

static void large(void) {
  int fd = open("work/large", O_RDWR | O_CREAT, 0666);
  for (unsigned i = 0; i < sizeof buffer; i++) buffer[i] = i * 7 + i / 251;
  outcome("write many", write(fd, buffer, sizeof buffer));
  memset(buffer, 0, sizeof buffer);
  lseek(fd, 0, SEEK_SET);
  outcome("read many", read(fd, buffer, sizeof buffer));
  unsigned wrong = 0;
  for (unsigned i = 0; i < sizeof buffer; i++) wrong += buffer[i] != (char)(i * 7 + i / 251);
  say("wrong bytes", wrong);
  close(fd);
}

static void modes(void) {
  outcome("exclusive", open("work/a", O_WRONLY | O_CREAT | O_EXCL, 0666));
  outcome("absent", open("work/none", O_RDONLY));
  outcome("below a file", open("work/a/b", O_RDONLY));
  outcome("file as directory", open("work/a", O_RDONLY | O_DIRECTORY));
  outcome("write a directory", open("work", O_WRONLY));
  int fd = open("work/a", O_RDONLY);
  outcome("write to read-only", write(fd, "x", 1));
  outcome("truncate read-only", ftruncate(fd, 1));
  close(fd);
  fd = open("work/a", O_WRONLY | O_APPEND);
  outcome("append", write(fd, "++", 2));
  outcome("read from write-only", read(fd, buffer, 1));
  outcome("has append", (fcntl(fd, F_GETFL) & O_APPEND) != 0);
  outcome("clear append", fcntl(fd, F_SETFL, 0));
  lseek(fd, 0, SEEK_SET);
  outcome("overwrite", write(fd, "J", 1));
  outcome("set append", fcntl(fd, F_SETFL, O_APPEND));
  outcome("append again", write(fd, "##", 2));
  close(fd);
  contents("a", "work/a");
}

static void names(void) {
  outcome("mkdir", mkdir("work/d", 0777));
  outcome("mkdir again", mkdir("work/d", 0777));
  outcome("rename", rename("work/a", "work/d/b"));
  outcome("rename absent", rename("work/a", "work/d/b"));
  outcome("rmdir full", rmdir("work/d"));
  outcome("rmdir file", rmdir("work/d/b"));
  outcome("unlink directory", unlink("work/d") < 0 ? 0 : 1);
  outcome("link", link("work/d/b", "work/second"));
  outcome("symlink", symlink("d/b", "work/soft"));
  outcome("symlink again", symlink("d/b", "work/soft"));
  outcome("readlink", readlink("work/soft", buffer, 100));
  write(1, buffer, 3);
  say_text("\n");
  outcome("short readlink", readlink("work/soft", buffer, 1));
  contents("through", "work/soft");
  outcome("not through", open("work/soft", O_RDONLY | O_NOFOLLOW));
  kind("soft", "work/soft", 1);
  kind("soft itself", "work/soft", 0);
  kind("d", "work/d", 1);
  kind("none", "work/none", 1);
  outcome("access", access("work/second", R_OK));
  symlink("loop", "work/loop");
  outcome("loop", open("work/loop", O_RDONLY));
}

static void times(void) {
  struct timespec set[2] = {{1000000000, 5}, {1200000000, 999999999}};
  struct stat s;
  outcome("utimensat", utimensat(AT_FDCWD, "work/second", set, 0));
  stat("work/second", &s);
  say("accessed", s.st_atim.tv_sec);
  say("modified", s.st_mtim.tv_sec);
  say("nanoseconds", s.st_mtim.tv_nsec);
  set[0].tv_nsec = UTIME_OMIT;
  set[1].tv_sec = 7;
  int fd = open("work/second", O_RDWR);
  outcome("futimens", futimens(fd, set));
  fstat(fd, &s);
  say("accessed", s.st_atim.tv_sec);
  say("modified", s.st_mtim.tv_sec);
  set[1].tv_nsec = UTIME_NOW;
  outcome("futimens now", futimens(fd, set));
  fstat(fd, &s);
  say("later", s.st_mtim.tv_sec > 1600000000);
  close(fd);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char **)a, *(char **)b); }

static void list(const char *path) {
  static char *found[400];
  int count = 0;
  DIR *dir = opendir(path);
  if (!dir) { outcome("opendir", -1); return; }
  for (struct dirent *e; (e = readdir(dir));) {
    char *name = malloc(strlen(e->d_name) + 3);
    strcpy(name, e->d_name);
    if (e->d_type == DT_DIR) strcat(name, "/");
    if (e->d_type == DT_LNK) strcat(name, "@");
    found[count++] = name;
  }
  closedir(dir);
  qsort(found, count, sizeof *found, by_name);
  say(path, count);
  for (int i = 0; i < count && i < 12; i++) {
    say_text(found[i]);
    say_text(i + 1 < count ? " " : "\n");
  }
  if (count > 12) say_text("\n");
}

static void many(void) {
  char name[] = "work/many/file-with-a-long-name-000";
  mkdir("work/many", 0777);
  for (int i = 0; i < 300; i++) {
    char *end = name + sizeof name - 1;
    end[-1] = '0' + i % 10, end[-2] = '0' + i / 10 % 10, end[-3] = '0' + i / 100;
    close(open(name, O_WRONLY | O_CREAT, 0666));
  }
  list("work/many");
}

int main(void) {
  outcome("mkdir work", mkdir("work", 0777));
  positions();
  large();
  modes();
  names();
  times();
  list("work");
  list("work/a");
  many();
  outcome("unlink", unlink("work/second"));
  outcome("unlink again", unlink("work/second"));
  outcome("unlink link", unlink("work/soft"));
  contents("b", "work/d/b");
  /* A file that is open outlives its name. */
  int fd = open("work/d/b", O_RDONLY);
  outcome("unlink open", unlink("work/d/b"));
  outcome("read it", read(fd, buffer, 5));
  outcome("rmdir", rmdir("work/d"));
  outcome("dup2", fd);
  return 0;
}
