#include "client/command/interrupt.h"

#include <atomic>

namespace batchwright {
namespace {

// A signal handler reaches nothing but what is global.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void set_interrupted(int) { interrupted = true; }

}  // namespace

Interrupt::Interrupt() {
  interrupted = false;
  struct sigaction action = {};
  action.sa_handler = set_interrupted;
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
