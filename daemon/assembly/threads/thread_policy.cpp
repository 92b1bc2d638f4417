#include "daemon/assembly/threads/thread_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>

namespace batchwright {
namespace {

// ioprio.h is the kernel's, not the C library's.
constexpr int kIoprioWhoProcess = 1;
constexpr int kIoprioClassShift = 13;
constexpr int kBestEffort = 2, kIdle = 3, kLastOfClass = 7;
constexpr int kMostNice = 19;

/// A set of processors of any number.
class ProcessorSet {
 public:
  ProcessorSet() : set_(CPU_ALLOC(kMostProcessors)) { CPU_ZERO_S(bytes(), set_.get()); }

  static std::size_t bytes() { return CPU_ALLOC_SIZE(kMostProcessors); }
  cpu_set_t* get() { return set_.get(); }
  void add(std::uint32_t processor) { CPU_SET_S(processor, bytes(), set_.get()); }
  std::vector<std::uint32_t> numbers() const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = 0; i < kMostProcessors; ++i) {
      if (CPU_ISSET_S(i, bytes(), set_.get())) found.push_back(i);
    }
    return found;
  }

 private:
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  std::unique_ptr<cpu_set_t, Free> set_;
};

void set_io(IoPriority io) {
  if (io == IoPriority::normal) return;
  const int value = io == IoPriority::idle ? kIdle << kIoprioClassShift
                                           : kBestEffort << kIoprioClassShift | kLastOfClass;
  ::syscall(SYS_ioprio_set, kIoprioWhoProcess, 0, value);  // 0: this thread
}

}  // namespace

Result<std::vector<std::uint32_t>> parse_processors(std::string_view text) {
  const Error bad{ErrorCode::invalid_argument,
                  fmt::format("found \"{}\"; allowed: numbers and ranges such as 0-3,8, below {}",
                              text, kMostProcessors)};
  std::vector<std::uint32_t> processors;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto first = take_whole<std::uint32_t>(rest);
    std::optional<std::uint32_t> last = first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      last = take_whole<std::uint32_t>(rest);
    }
    if (!first || !last || *last < *first || *last >= kMostProcessors) return bad;
    for (std::uint32_t i = *first; i <= *last; ++i) processors.push_back(i);
    if (rest.empty()) break;
    if (!rest.starts_with(',') || rest.size() == 1) return bad;
    rest.remove_prefix(1);
  }
  std::sort(processors.begin(), processors.end());
  processors.erase(std::unique(processors.begin(), processors.end()), processors.end());
  return processors;
}

Result<void> check_manners(const ThreadPolicy& policy) {
  if (policy.processors.empty()) return {};
  ProcessorSet set;
  if (::sched_getaffinity(0, ProcessorSet::bytes(), set.get()) != 0) {
    return Error{ErrorCode::io_error, fmt::format("sched_getaffinity: {}", std::strerror(errno))};
  }
  const std::vector<std::uint32_t> allowed = set.numbers();
  const bool any = std::any_of(policy.processors.begin(), policy.processors.end(),
                               [&allowed](std::uint32_t wanted) {
                                 return std::binary_search(allowed.begin(), allowed.end(), wanted);
                               });
  if (any) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("found processors {}; this process may use {}",
                           fmt::join(policy.processors, ","), fmt::join(allowed, ","))};
}

void adopt(const ThreadPolicy& policy) noexcept {
  if (policy.nice > 0) {
    // Of the first thread: this one may have been started by one that has policy already.
    errno = 0;  // -1 is a priority, too
    const int before = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::getpid()));
    const int wanted = (errno == 0 ? before : 0) + static_cast<int>(policy.nice);
    ::setpriority(PRIO_PROCESS, 0, std::min(wanted, kMostNice));
  }
  set_io(policy.io);
  if (policy.processors.empty()) return;
  ProcessorSet set;
  for (const std::uint32_t processor : policy.processors) set.add(processor);
  ::sched_setaffinity(0, ProcessorSet::bytes(), set.get());
}

std::chrono::nanoseconds thread_time() noexcept {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::chrono::nanoseconds rest_after(std::chrono::nanoseconds computed, double share) {
  if (share >= 1.0) return {};
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(static_cast<double>(computed.count()) * (1.0 / share - 1.0)));
}

}  // namespace batchwright
