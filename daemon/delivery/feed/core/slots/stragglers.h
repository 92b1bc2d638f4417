#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/delivery/feed/core/slots/upcoming_batches.h"

namespace batchwright {

/// The time that others may spend waiting for one straggler: some at once, and in the long run one
/// twentieth of all time, so that a repeated straggler costs them no more than that.
/// Threads: one at a time.
class WaitBudget {
 public:
  using Clock = std::chrono::steady_clock;

  WaitBudget(Clock::duration most, Clock::time_point now) : most_(most), left_(most), as_of_(now) {}

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

/// What is known of one subscription as a straggler. It is kept with the subscription.
struct StragglerState {
  std::optional<WaitBudget> budget = {};  ///< Of those that wait for it; empty: none ever did.
  bool held_up = false;                   ///< Others had to wait for it in this turn.
  bool left_behind = false;               ///< Those ahead wait for it no longer.
};

/// Decides which subscriptions those ahead wait for, for a moment, because they are about to fall
/// out of the slots. The caller notes with a subscription that it is left behind, and that it is no
/// longer.
///
/// Trainers that never pause stand still for some milliseconds whenever the system gives their
/// processor to another program. If those ahead went on, the batches in between would leave the
/// slots, and be assembled again for each straggler from then on: it never catches up with others
/// that are as fast as itself. Once patience is at its end, a straggler is left behind, and served
/// on its own until it has caught up.
/// Threads: one at a time.
class Stragglers {
 public:
  using Time = WaitBudget::Clock::time_point;

  struct LeftBehind {
    SubscriptionKey key;
    std::uint64_t batches = 0;  ///< So far is it behind the one that waited.
  };
  struct Verdict {
    bool waits = false;
    std::vector<LeftBehind> left_behind;  ///< Those that are to be left behind from now on.
  };

  /// `slots`: in which all share their batches. `most`: as long as is waited at once.
  Stragglers(std::uint32_t slots, WaitBudget::Clock::duration most) : slots_(slots), most_(most) {}

  /// How many of its next batches a cohort keeps in the slots when one is wanted for `id`: those
  /// that it needs before it comes to `id` itself, if that is not far.
  std::uint64_t keeps_before(const Cohort& cohort, const BatchId& id) const;
  /// Whether one whose next batch is `id` has to wait until others came nearer: those that are half
  /// of the slots behind it, or more, as long as there is patience with one of them.
  Verdict wait_for(const BatchId& id, const std::vector<Cohort>& cohorts, Time now);
  /// Ends a turn: those that held up no other in it cost no patience. Returns those that are left
  /// behind, and near those ahead again: they are left behind no longer.
  std::vector<SubscriptionKey> end_turn(const std::vector<Cohort>& cohorts, Time now);
  void forget(const SubscriptionKey& key) { current_.erase(key); }
  void clear() { current_.clear(); }

  /// Whether none is waited for or left behind.
  bool empty() const { return current_.empty(); }
  /// One that others wait for just now.
  std::optional<SubscriptionKey> awaited() const;

 private:
  /// A subscription that is further away than this shares no batch, whatever the others do.
  std::uint64_t reach() const { return 2 * std::uint64_t{slots_}; }
  bool has_caught_up(const SubscriptionKey& key, const std::vector<Cohort>& cohorts) const;

  std::uint32_t slots_;
  WaitBudget::Clock::duration most_;
  Members current_;  ///< Those that are waited for, or left behind.
};

}  // namespace batchwright
