#pragma once

#include <algorithm>
#include <chrono>

namespace batchwright {

/// The end of a wait, and how long it was to be, for messages.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::chrono::milliseconds limit)
      : limit_(std::min<std::chrono::milliseconds>(limit, std::chrono::hours(24 * 365))),
        end_(Clock::now() + limit_) {}

  std::chrono::milliseconds limit() const { return limit_; }
  bool passed() const { return Clock::now() >= end_; }
  /// Rounded up, so that waiting for it is not a busy loop; 0 when it has passed.
  std::chrono::milliseconds remaining() const {
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()));
  }

 private:
  std::chrono::milliseconds limit_;
  Clock::time_point end_;
};

}  // namespace batchwright
