/* For Lua alone: this libc has no setjmp. What Lua throws and catches with is replaced (see `build`), so nothing here is
   ever defined or called. */
typedef int jmp_buf[1];
int setjmp(jmp_buf);
_Noreturn void longjmp(jmp_buf, int);
