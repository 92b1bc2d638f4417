#pragma once

#include <algorithm>
#include <chrono>

namespace batchwright {

/// A moment of the clock that a session goes by: the system's, or a simulation's.
using Time = std::chrono::steady_clock::time_point;

/// The end of a wait, and how long it was to be, for messages. Time is an argument.
class Deadline {
 public:
  Deadline(std::chrono::milliseconds limit, Time now)
      : limit_(std::min<std::chrono::milliseconds>(limit, std::chrono::hours(24 * 365))),
        end_(now + limit_) {}

  /// The same for an answer of the daemon, which counts the time, too, and says why it is over.
  Deadline for_answer() const {
    Deadline later = *this;
    later.end_ += std::chrono::seconds(1);
    return later;
  }
  std::chrono::milliseconds limit() const { return limit_; }
  bool passed(Time now) const { return now >= end_; }
  /// Rounded up, so that waiting for it is not a busy loop; 0 when it has passed.
  std::chrono::milliseconds remaining(Time now) const {
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::ceil<std::chrono::milliseconds>(end_ - now));
  }

 private:
  std::chrono::milliseconds limit_;
  Time end_;
};

}  // namespace batchwright
