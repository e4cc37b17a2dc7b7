/* Number of primes below n by the sieve of Eratosthenes over odd numbers; checked by the linear sieve, which crosses
   out every composite once. */
#include "kernel.h"

static uint8_t *crossed;

EXPORT(sieve) uint32_t sieve(uint32_t n) {
  arena_reset();
  uint32_t half = n / 2; /* crossed[i] stands for 2i + 1 */
  crossed = arena_get(half);
  for (uint32_t i = 0; i < half; i++) crossed[i] = 0;
  uint32_t count = n > 2;
  for (uint32_t i = 1; i < half; i++) {
    if (crossed[i]) continue;
    count++;
    uint32_t p = 2 * i + 1;
    if (p < 65536)
      for (uint32_t j = p * p / 2; j < half; j += p) crossed[j] = 1;
  }
  return count;
}

static uint32_t sieve_linear(uint32_t n, uint64_t *sum) {
  uint32_t *least = arena_get((n + 1) * 4), *primes = arena_get((n / 2 + 2) * 4), count = 0;
  for (uint32_t i = 0; i <= n; i++) least[i] = 0;
  for (uint32_t i = 2; i < n; i++) {
    if (least[i] == 0) {
      least[i] = i;
      primes[count++] = i;
      *sum = sum_value(*sum, i);
    }
    for (uint32_t k = 0; k < count && primes[k] <= least[i] && (uint64_t)i * primes[k] < n; k++)
      least[i * primes[k]] = primes[k];
  }
  return count;
}

KERNEL(2000000) {
  uint32_t count = sieve(n);
  uint64_t sum = SUM0, again = SUM0;
  if (n > 2) sum = sum_value(sum, 2);
  for (uint32_t i = 1; i < n / 2; i++)
    if (!crossed[i]) sum = sum_value(sum, 2 * i + 1);
  uint32_t second = sieve_linear(n, &again);
  figure("primes", count);
  return verdict("sieve", n, sum, count == second && sum == again);
}
