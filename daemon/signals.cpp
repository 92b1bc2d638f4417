#include "daemon/signals.h"

#include <unistd.h>

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

volatile std::sig_atomic_t code_at_last = 0;

void end_at_once(int /*signal*/) {
  constexpr char kWords[] =
      "batchwrightd: ends without the threads that it has waited for: a file system does not "
      "answer\n";
  // Nothing else may be called here.
  static_cast<void>(::write(STDERR_FILENO, kWords, sizeof kWords - 1) == 0);
  ::_exit(code_at_last);
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

void end_within(unsigned seconds, int code) {
  code_at_last = code;
  std::signal(SIGALRM, end_at_once);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::alarm(seconds);
}

void let_signals_in() {
  const sigset_t set = held_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace batchwright
