#pragma once

#include <algorithm>
#include <chrono>

namespace batchwright {

/// The time that others may spend waiting for one straggler: some at once, and in the long run one
/// twentieth of all time, so that a repeated straggler costs them no more than that.
/// Threads: one at a time.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  Patience(Clock::duration most, Clock::time_point now) : most_(most), left_(most), as_of_(now) {}

  /// Others begin to wait, or continue to. False when there is no patience left, and they must not.
  bool wait(Clock::time_point now) {
    settle(now);
    return waiting_ = left_ > Clock::duration::zero();
  }
  void stop_waiting(Clock::time_point now) {
    settle(now);
    waiting_ = false;
  }
  bool waiting() const { return waiting_; }

 private:
  static constexpr int kShare = 20;

  void settle(Clock::time_point now) {
    const auto since = now - as_of_;
    left_ += waiting_ ? -since : since / kShare;
    left_ = std::clamp(left_, Clock::duration::zero(), most_);
    as_of_ = now;
  }

  Clock::duration most_;
  Clock::duration left_;
  Clock::time_point as_of_;
  bool waiting_ = false;
};

}  // namespace batchwright
