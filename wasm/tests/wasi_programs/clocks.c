/* Clocks, sleeping and waiting. Prints relations, which hold for any clock. */
#include "say.h"
#include <poll.h>
#include <sched.h>
#include <time.h>

static long long now(clockid_t clock) {
  struct timespec t;
  if (clock_gettime(clock, &t)) return -1;
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(void) {
  struct timespec t;
  say("after 2019", now(CLOCK_REALTIME) > 1546300800LL * 1000000000);
  say("time", time(0) > 1546300800);
  long long start = now(CLOCK_MONOTONIC);
  say("not backwards", now(CLOCK_MONOTONIC) >= start);
  outcome("resolution", clock_getres(CLOCK_MONOTONIC, &t));
  say("fine", t.tv_sec == 0 && t.tv_nsec > 0);
  t = (struct timespec){0, 3000000};
  outcome("nanosleep", nanosleep(&t, 0));
  say("slept", now(CLOCK_MONOTONIC) - start >= 3000000);
  start = now(CLOCK_MONOTONIC);
  start += 2000000;
  t = (struct timespec){start / 1000000000, start % 1000000000};
  outcome("until", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0));
  say("reached", now(CLOCK_MONOTONIC) >= start);
  outcome("in the past", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0));
  outcome("yield", sched_yield());
  struct pollfd input = {0, POLLIN, 0}, output = {1, POLLOUT, 0};
  outcome("output is ready", poll(&output, 1, 1000));
  say("writable", output.revents == POLLOUT);
  outcome("poll nothing", poll(0, 0, 2));
  input.fd = 77;
  outcome("no descriptor", poll(&input, 1, 0));
  say("invalid", input.revents == POLLNVAL);
  long long until = now(CLOCK_MONOTONIC) + 5000000, readings = 0;
  while (now(CLOCK_MONOTONIC) < until) readings++;
  say("waited by reading", readings > 0);
  return 0;
}
