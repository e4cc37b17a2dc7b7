/* Paths that lead out of the directory. The harness put there `out`, a link to `..`, `root`, a link
   to the file /etc/hostname, `inside`, a link to `deep/..`, and `deep/file`. */
#include "say.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <wasi/api.h>

static void tries(const char *path) {
  char buffer[16];
  struct stat s;
  say_text(path);
  say_text("\n");
  int fd = openat(3, path, O_RDONLY);
  if (outcome(" open", fd < 0 ? -1 : 0) == 0) close(fd);
  outcome(" stat", fstatat(3, path, &s, 0));
  outcome(" create", openat(3, path, O_WRONLY | O_CREAT | O_EXCL, 0666) < 0 ? -1 : 0);
  outcome(" mkdir", mkdirat(3, path, 0777));
  outcome(" unlink", unlinkat(3, path, 0));
  outcome(" rmdir", unlinkat(3, path, AT_REMOVEDIR));
  outcome(" rename to", renameat(3, "deep/file", 3, path));
  outcome(" rename from", renameat(3, path, 3, "deep/stolen"));
  outcome(" link to", linkat(3, "deep/file", 3, path, 0));
  outcome(" link from", linkat(3, path, 3, "deep/stolen", 0));
  outcome(" readlink", readlinkat(3, path, buffer, sizeof buffer) < 0 ? -1 : 0);
  outcome(" symlink", symlinkat("deep/file", 3, path));
}

/* The functions of WASI themselves, because the C library looks absolute paths up on its own. */
static void raw(const char *label, const char *path) {
  __wasi_fd_t fd;
  __wasi_filestat_t stat;
  __wasi_size_t used;
  uint8_t buffer[16];
  say_text(label);
  say_text("\n");
  say(" open", __wasi_path_open(3, 1, path, 0, __WASI_RIGHTS_FD_READ, 0, 0, &fd));
  say(" create", __wasi_path_open(3, 0, path, __WASI_OFLAGS_CREAT, __WASI_RIGHTS_FD_WRITE, 0, 0, &fd));
  say(" directory", __wasi_path_open(3, 0, path, __WASI_OFLAGS_DIRECTORY, 0, 0, 0, &fd));
  say(" stat", __wasi_path_filestat_get(3, 0, path, &stat));
  say(" times", __wasi_path_filestat_set_times(3, 0, path, 0, 0, __WASI_FSTFLAGS_ATIM_NOW));
  say(" mkdir", __wasi_path_create_directory(3, path));
  say(" rmdir", __wasi_path_remove_directory(3, path));
  say(" unlink", __wasi_path_unlink_file(3, path));
  say(" rename", __wasi_path_rename(3, "deep/file", 3, path));
  say(" link", __wasi_path_link(3, 0, "deep/file", 3, path));
  say(" symlink", __wasi_path_symlink("deep/file", 3, path));
  say(" readlink", __wasi_path_readlink(3, path, buffer, sizeof buffer, &used));
}

static char long_path[6000];

int main(void) {
  raw("absolute", "/etc/hostname");
  raw("root", "/");
  raw("not UTF-8", "deep/\xff");
  memset(long_path, 'a', sizeof long_path - 1);
  raw("long", long_path);
  tries("../secret");
  tries("deep/../../secret");
  tries("/etc/hostname");
  tries("out/secret");
  outcome("through a link", openat(3, "root", O_RDONLY));
  outcome("inside", openat(3, "inside/deep/file", O_RDONLY) < 0 ? -1 : 0);
  outcome("up and down", openat(3, "deep/../deep/file", O_RDONLY) < 0 ? -1 : 0);
  outcome("new link out", symlinkat("/etc", 3, "new"));
  outcome("new link up", symlinkat("../..", 3, "up") < 0 ? -1 : 0);
  outcome("through it", openat(3, "up/etc", O_RDONLY) < 0 ? -1 : 0);
  outcome("empty", openat(3, "", O_RDONLY));
  outcome("itself", openat(3, ".", O_RDONLY) < 0 ? -1 : 0);
  outcome("parent", openat(3, "..", O_RDONLY));
  return 0;
}
