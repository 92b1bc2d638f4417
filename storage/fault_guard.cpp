#include "storage/fault_guard.h"

#include <atomic>
#include <csetjmp>
#include <csignal>

// A page of a memory map that the kernel cannot provide arrives as SIGBUS at the reading
// instruction. A guarded read sets a return point first; the handler jumps there when the thread
// that faulted has one, and else passes the signal on to whoever handled it before.
//
// The handler runs with SA_NODEFER, so the signal is not blocked when it jumps out, and saving
// the signal mask (a system call for each read) is not needed.

namespace batchwright {
namespace {

struct ReturnPoint {
  sigjmp_buf place;
  ReturnPoint* outer;
};

// Constant-initialised, and touched by the thread before any fault that looks at it.
thread_local ReturnPoint* return_point = nullptr;

struct sigaction previous_action;

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
    return;
  }
  if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
    return;
  }
  // Returning runs the faulting instruction again, now with the default action. A signal that
  // was sent by a process has no such instruction and is sent again.
  std::signal(signal, SIG_DFL);
  if (info->si_code <= 0) std::raise(signal);
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  if (info->si_code > 0 && return_point != nullptr) {
    // A sanitizer's handler stands before this one and blocks all signals; the next fault would
    // end the process. The thread goes on with the mask it was interrupted with.
    pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
    abandon_guarded_read();
  }
  pass_on(signal, info, context);
}

bool install_handler() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  return sigaction(SIGBUS, &action, &previous_action) == 0;
}

}  // namespace

bool run_guarded(void (*read)(void*), void* argument) {
  static const bool installed = install_handler();
  static_cast<void>(installed);
  ReturnPoint point;
  point.outer = return_point;
  if (sigsetjmp(point.place, 0) != 0) {
    return_point = point.outer;
    return false;
  }
  return_point = &point;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  read(argument);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return_point = point.outer;
  return true;
}

void abandon_guarded_read() {
  if (return_point != nullptr) siglongjmp(return_point->place, 1);
}

}  // namespace batchwright
