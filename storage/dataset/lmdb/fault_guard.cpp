#include "storage/dataset/lmdb/fault_guard.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csetjmp>
#include <csignal>

// A page of a memory map that the kernel cannot provide arrives as SIGBUS at the reading
// instruction. LMDB's pages have no checksums: a flipped bit in one makes LMDB follow a null
// pointer or leave the map, which arrives as SIGSEGV, or divide by a page size of zero, SIGFPE.
// A guarded read sets a return point first; the handler jumps there when the thread that faulted
// has one, and else passes the signal on to the handler that was there before.
//
// The handler runs with SA_NODEFER, so the signal is not blocked when it jumps out, and saving
// the signal mask (a system call for each read) is not needed. With SA_ONSTACK a handler that was
// there before still gets the stack that it needs to report an overflow of the usual one.
//
// AddressSanitizer handles SIGSEGV and SIGFPE itself, but lets a program's own handler take its
// place (handle_segv=1, its default; not with handle_segv=2), and becomes the one before.

namespace batchwright {
namespace {

struct ReturnPoint {
  sigjmp_buf place;
  ReturnPoint* outer;
};

// Constant-initialised, and touched by the thread before any fault that looks at it.
thread_local ReturnPoint* return_point = nullptr;
thread_local MapFault fault_of_thread;

constexpr std::array<int, 3> kSignals = {SIGBUS, SIGSEGV, SIGFPE};
std::array<struct sigaction, kSignals.size()> previous_actions;

/// Returning runs the faulting instruction again, now with the default action. A signal that was
/// sent by a process has no such instruction and is sent again.
void take_default_course(int signal, const siginfo_t* info) {
  std::signal(signal, SIG_DFL);
  if (info->si_code <= 0) std::raise(signal);
}

/// A handler that came after this one may pass on to it in turn: then nothing handles the signal.
void pass_on(int signal, siginfo_t* info, void* context) {
  thread_local bool passing = false;
  if (passing) return take_default_course(signal, info);
  const auto place = std::find(kSignals.begin(), kSignals.end(), signal) - kSignals.begin();
  const struct sigaction& previous = previous_actions[static_cast<std::size_t>(place)];
  // A fault's signal cannot be ignored: the kernel ends the process all the same.
  const bool is_default = previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN;
  if ((previous.sa_flags & SA_SIGINFO) == 0 && is_default) return take_default_course(signal, info);
  passing = true;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else {
    previous.sa_handler(signal);
  }
  passing = false;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (info->si_code > 0 && return_point != nullptr) {
    // A sanitizer's handler stands before this one and blocks all signals; the next fault would
    // end the process. The thread goes on with the mask it was interrupted with.
    pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
    fault_of_thread = {signal, signal == SIGFPE ? nullptr : info->si_addr};
    siglongjmp(return_point->place, 1);
  }
  pass_on(signal, info, context);
}

}  // namespace

void arm_fault_guard() {
  static Mutex mutex;
  const MutexLock lock(mutex);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction now = {};
    sigaction(kSignals[i], nullptr, &now);
    // Entered as its own predecessor, the handler would pass signals on to itself.
    const bool is_ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault;
    if (!is_ours) sigaction(kSignals[i], &action, &previous_actions[i]);
  }
}

bool run_guarded(void (*read)(void*), void* argument) {
  static const bool armed = (arm_fault_guard(), true);
  static_cast<void>(armed);
  ReturnPoint point;
  // Guards may nest: an inner one jumps to its own place, and then gives the outer's back.
  point.outer = return_point;
  if (sigsetjmp(point.place, 0) != 0) {
    return_point = point.outer;
    return false;
  }
  return_point = &point;
  // The handler reads return_point: the compiler must not move reads of the map before it is set,
  // or behind where it is set back.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  read(argument);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return_point = point.outer;
  return true;
}

void abandon_guarded_read() {
  if (return_point == nullptr) return;
  // No signal: an assertion of LMDB's failed, and no address tells where.
  fault_of_thread = {};
  siglongjmp(return_point->place, 1);
}

Error map_faulted() {
  return {ErrorCode::store_unavailable,
          "the dataset's map cannot be read: its file was truncated, or the disk failed"};
}

MapFault last_fault() { return fault_of_thread; }

}  // namespace batchwright
