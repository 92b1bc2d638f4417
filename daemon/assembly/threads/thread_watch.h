#pragma once

#include <sys/types.h>

#include <chrono>
#include <ctime>
#include <string>

namespace batchwright {

/// Whether a thread at work gets on, as other threads see it. One that sleeps, and has used no
/// processor time since the last look, waits: for a page of a dataset, as a rule.
/// Threads: made by the thread that is watched; then one at a time. Time is an argument.
class ThreadWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit ThreadWatch(Time now);

  /// Looks at the thread, which is still there.
  void look(Time now);
  Time began() const { return began_; }
  /// The last look, or the beginning, at which it was getting on.
  Time moved() const { return moved_; }

 private:
  std::chrono::nanoseconds used() const;
  bool is_runnable() const;

  pid_t thread_;
  clockid_t clock_{};
  Time began_;
  Time moved_;
  std::chrono::nanoseconds used_;
};

/// A thread at a job of a feed.
struct ThreadAtWork {
  std::string feed;
  ThreadWatch watch{ThreadWatch::Time::clock::now()};
  bool is_assembly = false;  ///< Otherwise it is the feed's own, which fetches.
  bool is_lost = false;
};

}  // namespace batchwright
