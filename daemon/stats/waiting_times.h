#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace batchwright {

/// The side that is waited for.
enum class WaitingFor : std::uint8_t {
  none,
  daemon,
  slot,  ///< The daemon, which has no slot for the batch before other clients release one.
  step,  ///< The daemon, which has not cut a live feed's next step: producers have to push.
  client
};

const char* name_of(WaitingFor waited_for);

/// The times that a subscription's client waited for the daemon, and the daemon for it. The wait at
/// hand counts too, so that a stall shows while it lasts; and waits that were too short to be told
/// while they lasted.
/// Threads: one at a time.
class WaitingTimes {
 public:
  using Time = std::chrono::steady_clock::time_point;

  WaitingTimes() = default;
  explicit WaitingTimes(Time subscribed) : told_(subscribed) {}

  /// Changes the side that is waited for, from `now` on.
  void become(WaitingFor waited_for, Time now);
  WaitingFor now() const { return waited_for_; }
  /// The client waited for the daemon, and said so when that was over. No more counts than has
  /// passed since the last time it said so.
  void add_short(std::chrono::microseconds waited, Time now);
  /// The client waited for the daemon, slots and steps included.
  double daemon_seconds(Time now) const;
  double slot_seconds(Time now) const;    ///< The part of it that it waited for a slot.
  double step_seconds(Time now) const;    ///< The part of it that it waited for a step.
  double client_seconds(Time now) const;  ///< The daemon waited for the client.

 private:
  double seconds(WaitingFor waited_for, Time now) const;

  WaitingFor waited_for_ = WaitingFor::none;
  Time since_{};
  Time told_{};  ///< When the client last told of its short waits.
  /// By the side that was waited for.
  std::array<std::chrono::steady_clock::duration, 5> before_{};
};

/// How long the subscriptions of a feed waited, those that are gone included.
struct WaitedSeconds {
  double clients = 0.0;  ///< For the daemon.
  double slots = 0.0;    ///< The part of it that was for slots, which others held.
  double steps = 0.0;    ///< The part of it that was for steps of a live feed that were not cut.
  double daemon = 0.0;   ///< For a client.

  void add(const WaitingTimes& waited, WaitingTimes::Time now) {
    clients += waited.daemon_seconds(now);
    slots += waited.slot_seconds(now);
    steps += waited.step_seconds(now);
    daemon += waited.client_seconds(now);
  }
};

}  // namespace batchwright
