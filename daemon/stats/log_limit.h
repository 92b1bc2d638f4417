#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace batchwright {

/// Keeps what others can cause at will from filling the log: so many lines at once, then one in
/// each interval, with the number of those left out. Threads: one at a time.
class LogLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LogLimit(Clock::duration interval, std::int64_t at_once = 1)
      : interval_(interval), at_once_(at_once), left_(at_once) {}

  /// The number left out since the last line, when one may be written now; otherwise empty.
  std::optional<std::uint64_t> ask(Clock::time_point now) {
    const std::int64_t earned = left_ < at_once_ ? (now - counted_) / interval_ : 0;
    counted_ = left_ + earned < at_once_ ? counted_ + earned * interval_ : now;
    left_ = std::min(left_ + earned, at_once_);
    if (left_ == 0) {
      ++left_out_;
      return std::nullopt;
    }
    --left_;
    return std::exchange(left_out_, 0);
  }

 private:
  Clock::duration interval_;
  std::int64_t at_once_;
  std::int64_t left_;            ///< Lines that may be written now.
  Clock::time_point counted_{};  ///< Time at which the last one was earned.
  std::uint64_t left_out_ = 0;
};

}  // namespace batchwright
