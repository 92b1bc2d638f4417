#include "daemon/signals.h"

#include <csignal>
#include <initializer_list>

namespace batchwright {
namespace {

/// Those that end the daemon or have it read its configuration again.
sigset_t held_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  return set;
}

}  // namespace

void ignore_signals() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT}) std::signal(signal, SIG_DFL);
}

void hold_signals() {
  // At once, so that one that the parent's mask holds back is held at every moment.
  const sigset_t set = held_signals();
  pthread_sigmask(SIG_SETMASK, &set, nullptr);
}

bool is_asked_to_stop() {
  // A signal that is blocked stays pending, so it can be seen and is still delivered later.
  sigset_t pending;
  return sigpending(&pending) == 0 &&
         (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

void let_signals_in() {
  const sigset_t set = held_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace batchwright
