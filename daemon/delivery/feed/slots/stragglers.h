#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "daemon/delivery/feed/slots/itinerary.h"
#include "daemon/delivery/feed/slots/patience.h"

namespace batchwright {

/// Which subscriptions those ahead wait for, for a moment, because they are about to fall out of
/// the slots.
///
/// Trainers that never pause stand still for some milliseconds whenever the system gives their
/// processor to another program. If those ahead went on, the batches in between would leave the
/// slots, and be assembled again for each straggler from then on: it never catches up with others
/// that are as fast as itself. Once patience is at its end, a straggler is left behind, and served
/// on its own until it has caught up.
/// Threads: one at a time.
class Stragglers {
 public:
  using Time = Patience::Clock::time_point;

  struct LeftBehind {
    SubscriptionKey key;
    std::uint64_t batches = 0;  ///< So far is it behind the one that waited.
  };
  struct Verdict {
    bool waits = false;
    std::vector<LeftBehind> left_behind;  ///< From now on.
  };

  /// `slots`: in which all share their batches. `most`: as long as is waited at once.
  Stragglers(std::uint32_t slots, Patience::Clock::duration most) : slots_(slots), most_(most) {}

  /// How many of its next batches a front keeps in the slots when one is wanted for `id`: those
  /// that it needs before it comes to `id` itself, if that is not far.
  std::uint64_t keeps_before(const Front& front, const BatchId& id) const;
  /// Whether one whose next batch is `id` has to wait until others came nearer: those that are half
  /// of the slots behind it, or more, as long as there is patience with one of them.
  Verdict wait_for(const BatchId& id, const std::vector<Front>& fronts, Time now);
  /// Ends a turn: those that held up no other in it cost no patience. Returns those that were left
  /// behind, and are near those ahead again.
  std::vector<SubscriptionKey> end_turn(const std::vector<Front>& fronts, Time now);
  void forget(const SubscriptionKey& key);
  void clear();

  /// Whether none is waited for or left behind.
  bool empty() const { return current_.empty(); }
  bool is_left_behind(const SubscriptionKey& key) const;
  /// One that others wait for just now.
  std::optional<SubscriptionKey> awaited() const;

 private:
  struct Straggler {
    Patience patience;
    bool held_up = false;  ///< Others had to wait for it in this turn.
    bool left_behind = false;
  };
  /// A subscription that is further away than this shares no batch, whatever the others do.
  std::uint64_t reach() const { return 2 * std::uint64_t{slots_}; }
  bool has_caught_up(const SubscriptionKey& key, const std::vector<Front>& fronts) const;

  std::uint32_t slots_;
  Patience::Clock::duration most_;
  std::map<SubscriptionKey, Straggler> known_;  ///< All that others ever had to wait for.
  std::set<SubscriptionKey> current_;           ///< Waited for, or left behind.
};

}  // namespace batchwright
