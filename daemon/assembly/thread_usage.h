#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>

#include "daemon/stats/stats.h"

namespace batchwright {

/// The time that one job takes of its thread. A thread that went to sleep while it read a dataset
/// waited for a page, except for the time until it had a processor again; one that was only
/// preempted did not sleep, and waited for a processor all the time. Threads: the one that made it.
class ThreadUsage {
 public:
  using Clock = std::chrono::steady_clock;

  /// Longer waits are waits for the disk, not for a lock that another thread of the feed held.
  static constexpr std::chrono::milliseconds kDisk{1};

  std::chrono::nanoseconds taken() const { return Clock::now() - began_; }
  /// For pages.
  std::chrono::nanoseconds waited() const {
    if (!slept()) return kNone;
    const auto all = idle();
    return all - std::min(all, thread_run_delay() - delay_);
  }
  /// For a processor.
  std::chrono::nanoseconds lacked_processor() const {
    return slept() ? std::min(idle(), thread_run_delay() - delay_) : idle();
  }
  /// What the thread had the disk read; 0 where the file system does not count it.
  std::uint64_t disk_bytes() const {
    constexpr std::uint64_t kBlock = 512;
    return kBlock * static_cast<std::uint64_t>(usage().ru_inblock - usage_.ru_inblock);
  }
  std::uint64_t page_faults() const {
    const rusage now = usage();
    return static_cast<std::uint64_t>(now.ru_minflt - usage_.ru_minflt + now.ru_majflt -
                                      usage_.ru_majflt);
  }

 private:
  static constexpr std::chrono::nanoseconds kNone{0};

  bool slept() const { return usage().ru_nvcsw != usage_.ru_nvcsw; }
  /// Neither asleep nor at work, or asleep.
  std::chrono::nanoseconds idle() const {
    return std::max(taken() - (processor_time() - processor_), kNone);
  }
  static std::chrono::nanoseconds processor_time() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
  static rusage usage() {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage;
  }

  Clock::time_point began_ = Clock::now();
  std::chrono::nanoseconds processor_ = processor_time();
  std::chrono::nanoseconds delay_ = thread_run_delay();
  rusage usage_ = usage();
};

/// Whether the pages of a feed's batches are brought in before an assembly thread is given to
/// them. A feed is cold until kCalm batches in a row were in memory already, and again as soon as
/// an assembly thread had to wait.
/// Threads: one at a time.
class ColdFeedDetector {
 public:
  static constexpr unsigned kCalm = 16;

  bool is_cold() const { return calm_ < kCalm; }
  /// The pages of one batch were brought in.
  void fetched(bool waited) { calm_ = waited ? 0 : calm_ + (calm_ < kCalm ? 1 : 0); }
  /// One batch was assembled.
  void assembled(bool waited) {
    if (waited) calm_ = 0;
  }

 private:
  unsigned calm_ = 0;
};

}  // namespace batchwright
