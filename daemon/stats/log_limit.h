#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace batchwright {

/// Keeps what others can cause at will from filling the log: one line in each interval, with the
/// number of those left out. Threads: one at a time.
class LogLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LogLimit(Clock::duration interval) : interval_(interval) {}

  /// How many were left out since the last line, when one may be written now; else empty.
  std::optional<std::uint64_t> ask(Clock::time_point now) {
    if (last_ && now - *last_ < interval_) {
      ++left_out_;
      return std::nullopt;
    }
    last_ = now;
    return std::exchange(left_out_, 0);
  }

 private:
  Clock::duration interval_;
  std::optional<Clock::time_point> last_;
  std::uint64_t left_out_ = 0;
};

}  // namespace batchwright
