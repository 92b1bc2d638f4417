#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/delivery/feed/plans/epoch_contents.h"
#include "daemon/delivery/feed/plans/epochs.h"
#include "daemon/delivery/feed/plans/plan_failures.h"
#include "daemon/delivery/feed/plans/plan_turns.h"

namespace batchwright {

/// The plans of a feed: which epochs have one, which gets the next, of which data each epoch is,
/// and why one has none.
///
/// It decides and remembers; the caller plans, and says what came of it. One plan is under way at a
/// time.
/// Threads: one at a time.
class PlanKeeper {
 public:
  using Time = PlanTurns::Time;

  /// `data_may_grow`: an epoch is planned from the data as they are by then.
  explicit PlanKeeper(bool data_may_grow) : failures_(data_may_grow) {}

  /// The plan that the feed begins with. Nothing, where its first epoch was decided to be of other
  /// data.
  void begin(const PlannedEpoch& first);
  /// How many plans of so many sequences are kept at a time.
  static std::size_t room_for(std::uint64_t sequences);

  /// Empty when it is not there (yet).
  std::shared_ptr<const EpochSource> find(Epoch epoch) const { return epochs_.find(epoch); }
  bool has(Epoch epoch) const { return epochs_.find(epoch) != nullptr; }
  std::uint64_t steps(Epoch epoch) const { return epochs_.steps(epoch); }  ///< 0: it has no plan.
  Epochs& epochs() { return epochs_; }
  const Epochs& epochs() const { return epochs_; }
  /// What the latest plan took.
  double seconds() const { return seconds_; }

  /// Which plan is to be made now; it is under way from here on. One that goes for it is dropped.
  /// Without a plan: when to ask again, if ever. Nothing while one is under way.
  PlanTurns::Choice next(const PlanNeeds& needs, std::size_t room, Time now);
  bool is_planning() const { return planning_; }
  /// Whether an epoch that is needed has no plan.
  bool misses_any(const PlanNeeds& needs) const;

  /// Whether a plan that comes back is of no use, for the epoch was decided to be of other data
  /// meanwhile. `made`: of which data it is, or was asked for; then none is under way.
  bool is_outdated(Epoch epoch, std::optional<std::uint64_t> made);
  /// A plan has come. True when the epoch had failed before.
  bool made(PlannedEpoch planned, Time now);
  /// There is none, and why.
  void failed(Epoch epoch, const Error& error, Time now);
  /// There is none, for the data that were decided for the epoch are gone: it is of what there is.
  void data_gone(Epoch epoch);

  /// Why a subscription in this epoch is refused; null: it can wait.
  const Error* refusal(Epoch epoch, Time now) const { return failures_.refusal(epoch, now); }
  /// What a subscription waits for in an epoch without a plan, where subscriptions stand in so many
  /// epochs.
  std::string reason_to_wait(Epoch epoch, std::size_t epochs, std::size_t room) const;
  /// Why one of these epochs cannot be planned now, though that may pass; empty while none is so.
  std::string trouble(const std::set<Epoch>& stood_in) const;

  /// Of which data an epoch is, by their fingerprint, once that is decided.
  std::optional<std::uint64_t> data_of(Epoch epoch) const { return contents_.find(epoch); }
  /// False when other data were decided before.
  bool decide(Epoch epoch, std::uint64_t data) { return contents_.decide(epoch, data); }
  /// The epoch is planned anew, from other data. The caller knows that no client has any of it.
  void decide_anew(Epoch epoch, std::uint64_t data);

  /// Forgets plans that are not needed. Where none that is needed is there, the one that was stays,
  /// for clients that look on or come back. Returns the epochs that are kept.
  std::set<Epoch> keep(const PlanNeeds& needs);
  /// Forgets what was decided for epochs that are neither planned nor in use; returns them.
  std::vector<Epoch> forget_data(const std::function<bool(Epoch)>& in_use);

 private:
  Epochs epochs_;
  EpochContents contents_;
  PlanTurns turns_;
  PlanFailures failures_;
  bool planning_ = false;
  Epoch last_stood_in_;  ///< The earliest that a client stood in when it was looked at last.
  double seconds_ = 0.0;
};

}  // namespace batchwright
