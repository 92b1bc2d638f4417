#include "storage/dataset/lmdb/fault_guard.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

using namespace batchwright;

namespace {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BATCHWRIGHT_TSAN
#endif
#endif
#if defined(BATCHWRIGHT_TSAN) || defined(__SANITIZE_THREAD__)
constexpr bool kBlocksInHandlers = true;
#else
constexpr bool kBlocksInHandlers = false;
#endif

/// Reads where nothing is mapped, as LMDB does past a damaged node.
void read_astray() {
  const volatile int* volatile nowhere = reinterpret_cast<const int*>(0x188);
  static_cast<void>(*nowhere);
}

/// The signal that ends a child process which does this; 0 when it ends by itself. A child that
/// does not end within a minute gets SIGALRM.
int signal_of(const std::function<void()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) std::signal(signal, SIG_DFL);
    act();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("storage: a fault in a guarded read is told by signal and address") {
  arm_fault_guard();
  CHECK_FALSE(guarded(read_astray));
  CHECK(last_fault().signal == SIGSEGV);
  CHECK(last_fault().address == reinterpret_cast<const void*>(0x188));
  CHECK_FALSE(guarded(abandon_guarded_read));
  CHECK(last_fault().signal == 0);
  CHECK(guarded([] {}));
}

TEST_CASE("storage: a fault outside a guarded read takes its usual course") {
  CHECK(signal_of([] {
          arm_fault_guard();
          static_cast<void>(guarded(read_astray));
          read_astray();
        }) == SIGSEGV);
  // One of another thread, while this one is in a guarded read.
  CHECK(signal_of([] {
          arm_fault_guard();
          static_cast<void>(guarded([] { std::thread(read_astray).join(); }));
        }) == SIGSEGV);
  // One that a process sends is no fault.
  CHECK(signal_of([] {
          arm_fault_guard();
          static_cast<void>(guarded([] { std::raise(SIGSEGV); }));
        }) == SIGSEGV);
}

TEST_CASE("storage: the guard takes its signals back, and passes on what is not its own") {
  CHECK(signal_of([] {
          arm_fault_guard();
          std::signal(SIGSEGV, [](int) { _exit(0); });
          arm_fault_guard();
          if (guarded(read_astray)) std::abort();
          read_astray();  // the handler that came later
          std::abort();
        }) == 0);
}

// ThreadSanitizer blocks every signal while a handler runs, whatever SA_NODEFER says: what a
// handler raises comes when it has returned, and the fault with it, without end.
TEST_CASE("storage: handlers that pass on to each other end" * doctest::skip(kBlocksInHandlers)) {
  CHECK(signal_of([] {
          arm_fault_guard();
          static struct sigaction ours;
          struct sigaction theirs = {};
          theirs.sa_flags = SA_NODEFER;
          theirs.sa_handler = [](int signal) {
            sigaction(SIGSEGV, &ours, nullptr);
            std::raise(signal);
          };
          sigaction(SIGSEGV, &theirs, &ours);
          arm_fault_guard();
          read_astray();
        }) == SIGSEGV);
}
