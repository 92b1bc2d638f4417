#pragma once

#include <chrono>
#include <cstdint>

namespace batchwright {

/// The side that is waited for.
enum class WaitingFor : std::uint8_t { none, daemon, client };

const char* name_of(WaitingFor waited_for);

/// The times that a subscription's client waited for the daemon, and the daemon for it. The wait at
/// hand counts too, so that a stall shows while it lasts.
/// Threads: one at a time.
class WaitingTimes {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Changes the side that is waited for, from `now` on.
  void become(WaitingFor waited_for, Time now);
  WaitingFor now() const { return waited_for_; }
  double daemon_seconds(Time now) const;  ///< The client waited for the daemon.
  double client_seconds(Time now) const;  ///< The daemon waited for the client.

 private:
  double seconds(WaitingFor waited_for, std::chrono::steady_clock::duration before, Time now) const;

  WaitingFor waited_for_ = WaitingFor::none;
  Time since_{};
  std::chrono::steady_clock::duration for_daemon_{0};
  std::chrono::steady_clock::duration for_client_{0};
};

}  // namespace batchwright
