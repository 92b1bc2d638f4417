#include "client/library/memory/fault_handler.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

// A write to memory that is mapped for reading arrives as SIGSEGV with SEGV_ACCERR. The handler
// looks the address up, says what lies there, and passes the signal on to the handler that was
// there before, such as Python's faulthandler or a sanitizer's. What concerns other memory is
// passed on without a word.
//
// A handler that was installed later and chains to this one, as faulthandler does, passes a signal
// on by raising it again, which has no address. Then the handler of before the first installation
// is what is left to call: the one that raised must not be called again.

namespace batchwright {
namespace {

Mutex installing;
std::atomic<bool> installed = false;
/// What was there before us.
struct sigaction first_action GUARDED_BY(installing);
/// What was there when it was made sure of last.
struct sigaction previous_action GUARDED_BY(installing);

void run_default(int signal, const siginfo_t& info) {
  // Returning runs the faulting instruction again, now with the default action. A signal that was
  // sent has no such instruction and is sent again.
  std::signal(signal, SIG_DFL);
  if (info.si_code <= 0) std::raise(signal);
}

void pass_on(const struct sigaction& action, int signal, siginfo_t* info, void* context) {
  if ((action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction(signal, info, context);
  if (action.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
    return run_default(signal, *info);
  }
  action.sa_handler(signal);
}

/// Without the mutex, which a handler must not wait for: what it reads was written before it could
/// run.
void on_fault(int signal, siginfo_t* info, void* context) NO_THREAD_SAFETY_ANALYSIS {
  const int error = errno;
  if (info->si_code <= 0) {
    errno = error;
    return pass_on(first_action, signal, info, context);
  }
  if (info->si_code == SEGV_ACCERR) {
    if (const auto shown = FaultTable::of_process().find(info->si_addr)) {
      char text[512];
      const std::size_t size = explain(*shown, text);
      static_cast<void>(!write(STDERR_FILENO, text, size));
    }
  }
  errno = error;
  pass_on(previous_action, signal, info, context);
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_fault;
}

/// Text that grows within what it was given.
class Line {
 public:
  explicit Line(std::span<char> room) : room_(room) {}
  Line& operator<<(std::string_view words) {
    const std::size_t taken = std::min(words.size(), room_.size() - size_);
    std::memcpy(room_.data() + size_, words.data(), taken);
    size_ += taken;
    return *this;
  }
  Line& operator<<(std::uint64_t number) {
    char digits[20];
    std::size_t first = sizeof digits;
    do {
      digits[--first] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    return *this << std::string_view(digits + first, sizeof digits - first);
  }
  std::size_t size() const { return size_; }

 private:
  std::span<char> room_;
  std::size_t size_ = 0;
};

}  // namespace

std::size_t explain(const FaultTable::Shown& shown, std::span<char> text) noexcept {
  Line line(text);
  if (shown.feed[0] == '\0') {
    line << "batchwright: a write to the memory of a daemon's arena, where this process holds no "
            "batch: it was released, or the address is wrong\n";
    return line.size();
  }
  line
      << "batchwright: a write to batch " << shown.index << " of epoch " << shown.epoch
      << " of feed \"" << std::string_view(shown.feed.data())
      << "\", which can only be read. Subscribe with writable=True, or write to a copy, as clone() "
         "makes it. `python -X faulthandler` shows the line\n";
  return line.size();
}

Result<void> explain_faults() {
  const MutexLock lock(installing);
  struct sigaction now {};
  if (sigaction(SIGSEGV, nullptr, &now) == 0 && is_ours(now)) return {};
  if (!installed.exchange(true)) first_action = now;
  previous_action = now;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGSEGV, &action, nullptr) == 0) return {};
  return Error{ErrorCode::io_error, fmt::format("sigaction: {}", std::strerror(errno))};
}

}  // namespace batchwright
