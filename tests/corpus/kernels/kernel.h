/* What a kernel is built on instead of a libc: start, arguments, stdin, and memory from one arena.

   A kernel file defines, with KERNEL(default size), what `_start` runs, and marks its main function with
   EXPORT(name): scalars in, a scalar out, callable on its own and any number of times. */
#ifndef KERNEL_H
#define KERNEL_H
#include "out.h"
#include <stddef.h>

WASI(args_sizes_get) uint32_t wasi_args_sizes_get(uint32_t *count, uint32_t *bytes);
WASI(args_get) uint32_t wasi_args_get(char **args, char *text);
WASI(fd_read) uint32_t wasi_fd_read(uint32_t fd, const struct span *spans, uint32_t count, uint32_t *done);
WASI(proc_exit) _Noreturn void wasi_proc_exit(uint32_t status);

#define EXPORT(name) __attribute__((export_name(#name), noinline))

/* The compiler may call these for what it takes to be a copy or a fill. */
void *memcpy(void *to, const void *from, size_t n) {
  char *t = to;
  const char *f = from;
  while (n-- > 0) *t++ = *f++;
  return to;
}
void *memset(void *to, int c, size_t n) {
  char *t = to;
  while (n-- > 0) *t++ = (char)c;
  return to;
}

extern char __heap_base;
static uint32_t arena_used;

/* Exported functions start with this, so that calling them again needs no more memory. */
static inline void arena_reset(void) { arena_used = 0; }

/* Memory of unspecified content. Traps when there is none. */
static inline void *arena_get(uint32_t bytes) {
  uint64_t at = ((uint32_t)(uintptr_t)&__heap_base + 7u & ~7u) + (uint64_t)arena_used;
  uint64_t end = at + bytes + 7 & ~(uint64_t)7;
  uint64_t have = (uint64_t)__builtin_wasm_memory_size(0) << 16;
  if (end > have) {
    uint64_t pages = (end - have + 65535) >> 16;
    if (end >> 32 != 0 || __builtin_wasm_memory_grow(0, (uint32_t)pages) == (size_t)-1) __builtin_trap();
  }
  arena_used += (uint32_t)(end - at);
  return (void *)(uintptr_t)at;
}

/* All of stdin; the arena must have been reset, and is left just behind the text. */
static inline char *read_stdin(uint32_t *len) {
  uint32_t room = 4096;
  char *text = arena_get(room);
  *len = 0;
  for (;;) {
    if (*len == room) {
      arena_get(room); /* the arena is contiguous: this doubles the room */
      room *= 2;
    }
    struct span s = {text + *len, room - *len};
    uint32_t done = 0;
    if (wasi_fd_read(0, &s, 1, &done) != 0) __builtin_trap();
    if (done == 0) return text;
    *len += done;
  }
}

/* The first argument as a decimal number, or `dflt` if there is none. Anything else is a usage error. */
static inline uint32_t size_argument(uint32_t dflt) {
  uint32_t count = 0, bytes = 0;
  if (wasi_args_sizes_get(&count, &bytes) != 0) wasi_proc_exit(3);
  if (count < 2) return dflt;
  arena_reset();
  char **args = arena_get(count * sizeof *args);
  char *text = arena_get(bytes);
  if (wasi_args_get(args, text) != 0) wasi_proc_exit(3);
  uint32_t n = 0;
  for (const char *p = args[1]; *p; p++) {
    if (*p < '0' || *p > '9') wasi_proc_exit(2);
    n = n * 10 + (uint32_t)(*p - '0');
  }
  return n;
}

#define KERNEL(dflt)                              \
  static int kernel_main(uint32_t n);             \
  EXPORT(_start) void _start(void) {              \
    int status = kernel_main(size_argument(dflt)); \
    if (status != 0) wasi_proc_exit((uint32_t)status); \
  }                                               \
  static int kernel_main(uint32_t n)
#endif
