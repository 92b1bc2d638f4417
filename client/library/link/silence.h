#pragma once

#include <chrono>
#include <cstdint>
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

  /// More bytes than ZeroMQ's own answers are in any time that matters: these say nothing of the
  /// daemon's event loop.
  static constexpr std::uint64_t kLeastFlow = 4096;

  void heard(Clock::time_point now) { heard_ = now; }
  /// So many bytes have come in all: a message on its way is heard, too.
  void flowed(std::uint64_t bytes, Clock::time_point now);
  /// Whether the daemon is to be taken for lost. Asked when all that has come is taken in.
  bool is_too_long(Clock::time_point now);

 private:
  Clock::time_point heard_{};                   ///< Time of the last message.
  std::uint64_t bytes_ = 0;                     ///< That had come when bytes were last heard.
  std::optional<Clock::time_point> suspected_;  ///< Start of a closer watch.
};

}  // namespace batchwright
