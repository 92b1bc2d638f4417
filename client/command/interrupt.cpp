#include "client/command/interrupt.h"

#include <atomic>

namespace batchwright {
namespace {

// A signal handler reaches nothing but what is global.
// True unless 0. A word, since not every processor has atomic bytes that never wait.
std::atomic<int> interrupted = 0;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void set_interrupted(int) { interrupted = true; }

}  // namespace

Interrupt::Interrupt() {
  // An earlier one of this process may have left it set.
  interrupted = false;
  struct sigaction action = {};
  action.sa_handler = set_interrupted;
  // SA_RESETHAND: the next signal has its usual effect, should the command hang. No SA_RESTART, so
  // that a wait in the kernel ends and the flag is looked at.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &before_int_);
  sigaction(SIGTERM, &action, &before_term_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
}

bool Interrupt::came() const { return interrupted; }

}  // namespace batchwright
