#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/queue/work_queue.h"
#include "daemon/delivery/feed/roster/subscription_key.h"
#include "daemon/delivery/feed/slots/cursor.h"

namespace batchwright {

/// The batches that one subscription gets from where it stands, in order: those that it rehearses,
/// and then those of its cursor or, in a queue, those that are still to be given.
///
/// Lifetime: refers to the queue, which may change; all else is a copy of how things stood.
struct Itinerary {
  Cursor cursor;                     ///< Of a queue's subscription, only the epoch counts.
  std::uint64_t steps = 0;           ///< Of the cursor's epoch; 0: it has no plan.
  std::uint64_t next_steps = 0;      ///< Of the epoch behind it; 0: no plan, or it ends before.
  const WorkQueue* queue = nullptr;  ///< Not null: the batches are those of this queue.
  std::vector<BatchId> rehearsals;   ///< Due before all others.

  /// The batch that comes `distance` batches after the next one; empty where none does.
  std::optional<BatchId> ahead(std::uint64_t distance) const;
  /// How many batches come before `id`: 0 for the next one. Empty where it will not come, or is
  /// too far away to tell.
  std::optional<std::uint64_t> distance(const BatchId& id) const;
  /// Whether its batches come in the plan's order.
  bool follows_plan() const { return queue == nullptr && rehearsals.empty(); }
};

/// Subscriptions that stand at one place, and so need the same batches.
/// Lifetime: `at` refers to the subscriptions there, until one of them moves.
struct Front {
  Itinerary itinerary;
  const std::set<SubscriptionKey>* at = nullptr;
  bool left_behind = false;  ///< Those ahead wait for them no longer.
};

}  // namespace batchwright
