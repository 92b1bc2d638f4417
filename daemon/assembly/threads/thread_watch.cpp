#include "daemon/assembly/threads/thread_watch.h"

#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <utility>

#include "formats/formats.h"

namespace batchwright {

ThreadWatch::ThreadWatch(Time now) : thread_(::gettid()), began_(now), moved_(now) {
  ::pthread_getcpuclockid(::pthread_self(), &clock_);
  used_ = used();
}

void ThreadWatch::look(Time now) {
  const bool has_used = std::exchange(used_, used()) != used_;
  if (has_used || is_runnable()) moved_ = now;
}

std::chrono::nanoseconds ThreadWatch::used() const {
  timespec time{};
  ::clock_gettime(clock_, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// A busy machine may let a thread wait for a processor. Without /proc nothing is known of that.
bool ThreadWatch::is_runnable() const {
  const auto stat = file_text(fmt::format("/proc/self/task/{}/stat", thread_));
  // The name before the state may have any characters.
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  return name_end != std::string::npos && stat->substr(name_end + 1).starts_with(" R");
}

}  // namespace batchwright
