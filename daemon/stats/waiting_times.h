#pragma once

#include <chrono>
#include <cstdint>

namespace batchwright {

/// Who is waited for.
enum class WaitingFor : std::uint8_t { none, daemon, client };

const char* name_of(WaitingFor whom);

/// How long a subscription's client waited for the daemon, and the daemon for it. The wait at hand
/// counts too, so that a stall shows while it lasts.
/// Threads: one at a time.
class WaitingTimes {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// From `now` on somebody else is waited for, or nobody.
  void become(WaitingFor whom, Time now);
  WaitingFor now() const { return whom_; }
  double daemon_seconds(Time now) const;  ///< The client waited for the daemon.
  double client_seconds(Time now) const;  ///< The daemon waited for the client.

 private:
  double seconds(WaitingFor whom, std::chrono::steady_clock::duration before, Time now) const;

  WaitingFor whom_ = WaitingFor::none;
  Time since_{};
  std::chrono::steady_clock::duration for_daemon_{0};
  std::chrono::steady_clock::duration for_client_{0};
};

}  // namespace batchwright
