// Preloaded where qemu runs the tests: it has no robust mutexes, and a C library that asks the
// kernel for them refuses to make any, so that LMDB opens nothing. Those that it makes in their
// place are as good until a program dies with one.
#include <pthread.h>

int pthread_mutexattr_setrobust(pthread_mutexattr_t* attributes, int robustness) {
  (void)attributes;
  (void)robustness;
  return 0;
}
