// Preloaded into a program: it stops itself before each fork(), until somebody sends SIGCONT.

#include <dlfcn.h>
#include <signal.h>
#include <sys/types.h>

extern "C" pid_t fork() {
  raise(SIGSTOP);
  return reinterpret_cast<pid_t (*)()>(dlsym(RTLD_NEXT, "fork"))();
}
