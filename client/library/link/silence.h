#pragma once

#include <chrono>
#include <optional>

namespace batchwright {

/// Tells a daemon that is silent from a program that did not look, or could not: that one has heard
/// nothing either, and looks again.
/// Threads: one at a time. Time is an argument.
class Silence {
 public:
  using Clock = std::chrono::steady_clock;

  /// The daemon says something every second to those without an arena.
  static constexpr std::chrono::milliseconds kLongest{10'000};
  /// A silence counts once it has lasted for so long while a call was looking.
  static constexpr std::chrono::milliseconds kSecondLook{500};

  void heard(Clock::time_point now) { heard_ = now; }
  /// Whether the daemon is to be taken for lost. Asked when all that has come is taken in.
  bool is_too_long(Clock::time_point now);

 private:
  Clock::time_point heard_{};                   ///< Time of the last message.
  std::optional<Clock::time_point> suspected_;  ///< Start of a closer watch.
};

}  // namespace batchwright
