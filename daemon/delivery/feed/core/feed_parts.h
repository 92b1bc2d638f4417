#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/core/held_sends.h"
#include "daemon/delivery/feed/core/slots/slot_scheduler.h"
#include "daemon/delivery/feed/core/subscription_table.h"
#include "daemon/delivery/feed/feed_settings.h"
#include "daemon/delivery/feed/live/live_service.h"
#include "daemon/delivery/feed/plans/plan_store.h"
#include "daemon/delivery/feed/queue/queue_service.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {

/// How far a feed has come. It starts, serves once its first batch is there, and ends: by failing,
/// or by being retired, also after it failed. Threads: one at a time.
class FeedLife {
 public:
  enum class Stage : std::uint8_t { starting, serving, failed, retired };

  Stage stage() const { return stage_; }
  /// Whether nothing is delivered any longer; then why() says why.
  bool has_ended() const { return why_.has_value(); }
  bool is_retired() const { return stage_ == Stage::retired; }
  const std::optional<Error>& why() const { return why_; }

  /// True when that changes its stage.
  bool first_batch_is_there() {
    if (stage_ != Stage::starting) return false;
    stage_ = Stage::serving;
    return true;
  }
  /// False when it has ended before: then the first reason stays.
  bool fail(Error why) {
    if (has_ended()) return false;
    stage_ = Stage::failed;
    why_ = std::move(why);
    return true;
  }
  void retire(Error why) {
    stage_ = Stage::retired;
    why_ = std::move(why);
  }

  /// A client has subscribed, now or at some time before.
  void come() { had_client_ = true; }
  bool had_client() const { return had_client_; }

  /// As the statistics name it.
  FeedState state() const {
    if (has_ended()) return FeedState::failed;
    return stage_ == Stage::serving ? FeedState::serving : FeedState::starting;
  }

 private:
  Stage stage_ = Stage::starting;
  std::optional<Error> why_;
  bool had_client_ = false;
};

/// The parts of a feed, and what follows from them together: which batch each subscription gets
/// next, what blocks it, and which batches and plans are wanted.
struct FeedParts {
  FeedParts(FeedSettings its_settings, std::shared_ptr<SlotGeneration> slots,
            const SchedulerLimits& limits, QueueService its_desk, Epoch first,
            std::uint64_t its_sequences)
      : settings(std::move(its_settings)),
        scheduler(std::move(slots), limits),
        subscriptions(scheduler.cache().size()),
        desk(std::move(its_desk)),
        plans(settings.follow),
        first_epoch(first),
        sequences(its_sequences) {}

  FeedSettings settings;
  SlotScheduler scheduler;
  SubscriptionTable subscriptions;
  QueueService desk;
  HeldSends sends;
  PlanStore plans;
  FeedLife life;
  std::unique_ptr<LiveService> live = nullptr;  ///< Null: the feed has a dataset.
  /// Whether all that its clients are told waits for the spool.
  bool is_spooled() const { return live && live->is_spooled(); }
  Epoch first_epoch;                     ///< That the feed begins with.
  std::uint64_t sequences;               ///< Of the data that it serves.
  WaitedSeconds waited_before;           ///< What subscriptions waited that are gone.
  WaitingTimes::Time last_subscribed{};  ///< When the last client subscribed.

  /// After plans were made or dropped.
  void note_plans() { subscriptions.set_planned(plans.numbers()); }

  /// Whether a feed can begin with this batch.
  bool is_first(const BatchId& id) const { return id == BatchId{first_epoch, BatchIndex{0}}; }
  /// How many plans are kept at a time.
  std::size_t most_plans() const { return PlanStore::most_of(sequences); }
  /// The epochs that subscriptions stand in and come to, and those of the queue.
  PlanNeeds plan_needs() const;

  UpcomingBatches upcoming_of(const Subscription& subscription) const;
  /// The batch that a subscription gets next; empty at the end of its epoch, where a queue has
  /// nothing left, and for one that is not served.
  std::optional<BatchId> next_of(const Subscription& subscription) const;
  /// One for all that stand at the same place, in an epoch that is planned. Before the first client
  /// comes: the beginning of the first epoch, so that its first batches are there by then.
  std::vector<Cohort> cohorts() const;
  /// The batches that clients wait for, could have, and that are in no slot, each with a
  /// subscription that waits for it. They begin with another one at each turn.
  std::vector<std::pair<BatchId, SubscriptionKey>> demands(std::size_t turn) const;

  bool waits_for_plan(const Subscription& subscription) const;
  /// By the rule on slots.
  bool may_take(const Subscription& subscription, const BatchId& id) const;
  /// By max_lead: where sharing matters more than speed, none is further ahead of the slowest.
  bool leads_too_far(const Subscription& subscription) const;
  /// How many global steps `one` is ahead of a place; empty where it is behind, or that is unknown.
  std::optional<std::uint64_t> steps_ahead(const Subscription& one, const Position& of) const;
  /// Whether the epoch that a subscription is in is over for it.
  bool is_over(const Subscription& subscription, const EpochOutline& epoch) const;
  /// Of a live feed: the name of a subscription among its trainers.
  static TrainerKey trainer_of(const Subscription& subscription) {
    return subscription.in_queue() ? TrainerKey{} : subscription.key();
  }
  /// Of a live feed: the first step that a subscription, or the queue, has not released; empty
  /// where there is none. And that of the queue alone.
  std::optional<Step> oldest_step() const;
  std::optional<Step> queued_step() const;
  /// Of a live feed: where a newcomer that names no position begins. Ranks of a job begin together.
  Step live_start(const Subscription& newcomer) const;

  /// Which side waits for the other. A client that is held back by max_lead waits for other
  /// clients, and so does one that waits for the end of a queue's epoch: neither for the daemon,
  /// nor the daemon for it. One that has not said that it waits does not wait, whatever it holds.
  /// One that looks on is given no more before it says something: it is waited for.
  WaitingFor waiting_for(const Subscription& subscription) const;
  /// Whether its client may send releases late and together: no other waits for a slot of those it
  /// holds meanwhile, and no file says what it released.
  bool releases_may_join(const Subscription& subscription) const;
  /// Whether its program waits, and others' releases, arrival or sequences would let it go on and
  /// nothing else.
  bool waits_for_clients(const Subscription& subscription) const;
  /// How many slots would let all go on that are here or expected, each with a batch in reserve,
  /// and those that wait for a slot now.
  std::size_t slots_to_set() const;

 private:
  const SlotCache& slots() const { return scheduler.cache(); }
  bool lacks_slot(const Subscription& subscription, const BatchId& next) const;
  bool another_can_have(BatchIndex index, QueueOwner owner) const;
  std::optional<BatchId> demand_of(const Subscription& of) const;
};

/// What a subscription waits for, as a client and the log are told: a plan, its own releases, the
/// slowest client, a batch that is being assembled, or the slots and their holders.
std::string reason_to_wait(const FeedParts& feed, const Subscription& subscription,
                           WaitingTimes::Time now);

}  // namespace batchwright
