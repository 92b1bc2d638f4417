#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/feed/queue/work_queue.h"
#include "formats/formats.h"

namespace batchwright {

/// The position of a subscription: the batch it gets next. Pure arithmetic.
class Cursor {
 public:
  Cursor(const Share& share, Epoch epoch, Step step);

  Epoch epoch() const { return epoch_; }
  /// The global step of the next batch; equal to the epoch's steps at its end.
  Step step() const { return Step{share_.step_after(taken_)}; }
  const Share& share() const { return share_; }

  bool at_end(std::uint64_t steps) const { return taken_ >= share_.before_step(steps); }
  BatchId next() const { return {epoch_, share_.at(taken_)}; }
  void advance() { ++taken_; }
  void begin_next_epoch();

  /// The batch that comes `distance` batches after the next one within this epoch of `steps`
  /// steps, and beyond it in the epoch that follows. Empty where an epoch after that would begin.
  std::optional<BatchId> ahead(std::uint64_t distance, std::uint64_t steps,
                               std::uint64_t next_steps) const;

  /// How many batches come before `id`: 0 for the next one. Empty when `id` lies behind, is not
  /// this subscription's, or is further away than the epoch that follows.
  std::optional<std::uint64_t> distance(const BatchId& id, std::uint64_t steps) const;

 private:
  Share share_;
  Epoch epoch_;
  std::uint64_t taken_;  ///< Batches of this epoch that came before the next one.
};

/// The batches that one subscription gets from where it stands, in order: those that it rehearses,
/// and then those of its cursor or, in a queue, those that are still to be given.
///
/// Lifetime: refers to the queue, which may change; all else is a copy of how things stood.
struct UpcomingBatches {
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

struct StragglerState;
/// Subscriptions at one place, each with what is known of it as a straggler.
using Members = std::map<SubscriptionKey, StragglerState*>;

/// Subscriptions that stand at one place, and so need the same batches.
/// Lifetime: `at` refers to the subscriptions there, until one of them moves.
struct Cohort {
  UpcomingBatches upcoming;
  const Members* at = nullptr;
  bool left_behind = false;  ///< Those ahead wait for them no longer.
};

}  // namespace batchwright
