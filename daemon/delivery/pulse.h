#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/delivery/wire/wire.h"

namespace batchwright {

/// Tells a remote client that is lost, by what the kernel says of its connection.
///
/// ZeroMQ's thread answers a ping each second, also while the client's program computes. Behind a
/// large batch on a slow link the answer comes late, and then the bytes that leave are a sign of
/// life. What the other side's kernel takes in small amounts is none: it does so for a process that
/// is stopped, too. And where bytes are on their way, and none of them leaves, answers do not help.
/// Threads: one at a time. Time is an argument.
class Pulse {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// More than pings and signs of life are in any time that matters.
  static constexpr std::uint64_t kLeastFlow = 4096;

  explicit Pulse(Time now) : alive_(now), flowed_(now) {}

  /// Why it is lost, if it is: neither sign was seen for `limit`. Looks are to be far closer
  /// together than that.
  std::optional<std::string> lost(const Traffic& seen, Time now, std::chrono::milliseconds limit);

 private:
  Time alive_;   ///< When it last gave a sign of life.
  Time flowed_;  ///< When nothing was on its way, or some of that had left.
  std::uint64_t came_ = 0;
  std::uint64_t left_at_sign_ = 0;
  std::uint64_t left_ = 0;
};

}  // namespace batchwright
