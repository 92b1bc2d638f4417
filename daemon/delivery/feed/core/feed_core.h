#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/core/events.h"
#include "daemon/delivery/feed/core/feed_parts.h"

namespace batchwright {

/// The state of one feed and all of its decisions. No thread, clock, socket, loop or file: time
/// comes in with each event, and whatever must happen comes out as actions. README.md has the walk
/// of a batch.
///
/// A broken invariant (must()) fails this feed, with its last events in the log, and no other.
/// Threads: one at a time.
class FeedCore {
 public:
  using Time = WaitingTimes::Time;

  FeedCore(FeedParts parts, const PlannedEpoch& first, DataFacts facts);
  FeedCore(const FeedCore&) = delete;
  FeedCore& operator=(const FeedCore&) = delete;

  /// Whether a SubscribeRequested may come. Errors: invalid_argument, does_not_fit,
  /// fingerprint_mismatch, unsupported, or why the feed failed. What cannot be known before the
  /// epoch is planned is answered by a later Refused.
  Result<void> check_subscribe(const ClientInfo& client, const wire::SubscribeT& request) const;

  /// Takes in what happened. What follows is decided by decide().
  void on(FeedEvent event, Time now);
  /// What follows from the events since the last call, to be carried out in this order. What
  /// depends on a record is decided only after its Written. Only WriteRecords and RecordSteps can
  /// fail, and a failure fails the feed. A Send cannot fail: a peer that is gone comes as
  /// SessionEnded.
  void decide(Time now, std::vector<FeedAction>& actions);
  /// What is noted and decide() has not asked for: to be written where no turn follows any more.
  std::vector<Record> take_records() { return parts_.desk.take_records(); }
  /// The same of steps that are to be recorded.
  std::vector<Record> take_steps();
  /// Whether decide() has something to do.
  bool has_work() const { return due_.any || !actions_.empty(); }
  /// Whether a batch that has been assembled changes anything now. Otherwise it may be told of with
  /// others, once all that are under way are done.
  bool is_awaited() const { return !parts_.life.had_client() || parts_.subscriptions.any_short(); }

  const FeedParts& parts() const { return parts_; }
  const FeedCounters& counters() const { return counters_; }
  const DataFacts& facts() const { return facts_; }
  /// Whether a plan of these data, or one that was asked for with them, is of no use, for the epoch
  /// was decided to be of others meanwhile.
  bool is_outdated(Epoch epoch, std::optional<std::uint64_t> data) const {
    return parts_.plans.is_outdated(epoch, data);
  }

 private:
  /// What has changed, and so is to be looked at by decide().
  struct Due {
    bool any = false;                   ///< Anything at all.
    bool all = false;                   ///< Each subscription.
    std::vector<SubscriptionKey> keys;  ///< These subscriptions.
    std::vector<BatchId> ready;         ///< Those that want one of these batches.
    bool slots = false;                 ///< A slot has come free.
    std::uint32_t freed = 0;            ///< So many have since it was last assembled ahead.
    bool ahead = true;                  ///< Other batches may be next, or threads are free.
    bool plans = true;                  ///< Another plan may be needed.
    bool epochs = false;                ///< A plan may be needed no longer.
    std::size_t turn = 0;               ///< Which subscription is served first, in rotation.
  };

  // feed_core.cpp: events of clients, and what all of them use.
  void take(Started event);
  void take(SubscribeRequested event);
  void take(const Unsubscribed& event);
  void take(const Released& event);
  void take(const ProgramWaits& event);
  void take(ReasonAsked event);
  void take(const UpcomingAsked& event);
  void take(LiveAsked event);
  void take(const SessionEnded& event);
  void take(const ProcessExited& event);
  void take(const ArenaReleased& event);
  void take(const BatchSent& event) { give_back(event.slot); }
  void take(const SlotPoisoned& event);
  void release_leases(Subscription& subscription, const Released& event);
  void release_lease(Subscription& subscription, LeaseNumber lease, bool undone);
  void end_but(const Released& held);
  void leave(const SubscriptionKey& key, SessionEnd how);
  void step_back(Subscription& subscription);
  void give_back(const SlotRef& slot);
  void note_free();
  void await_returns();
  void note_undone(const QueueService::Undone& batch);

  // feed_core_subscribe.cpp
  Result<void> check_fingerprint(const wire::SubscribeT& request) const;
  bool keep_data(const wire::SubscribeT& request);
  void claim(Subscription& subscription, const wire::SubscribeT& request);

  // feed_core_results.cpp: events of what other threads did.
  void take(PlanReady event);
  void take(const PlanFailed& event);
  void take(const PlanOutdated&);
  void take(const BatchReady& event);
  void take(const BatchFailed& event);
  void take(const Written& event);
  void take(const StepsWritten& event);
  void note_not_written(const std::optional<Error>& failure);
  void take(SlotsGrown event);
  void take(const SlotsNotGrown& event) { fail(event.error); }
  void take(const SettingsChanged& event);
  void take(const DataOverwritten& event) { fail(event.error); }
  void take(const NotReplaced&) { refuse_all(*parts_.life.why()); }
  void take(const Retired& event);
  void take(const TimerDue& event);
  bool is_of_other_data(const SlotScheduler::Assignment& done, std::uint64_t data);
  void note_assembled(const SlotScheduler::Assignment& done);
  void count_assembled(const BatchId& id, const AssembledBatch& batch);
  void count_lost(const BatchId& id, const SkippedSequence& skipped);
  void end_without_data(Epoch epoch, const Error& error);
  void look_at_waits();
  void advance_queue();

  // feed_core_decide.cpp
  void follow_up();
  void hand_out();
  void serve(const SubscriptionKey& key);
  void serve_all(std::vector<SubscriptionKey> keys);
  bool serve_next(Subscription& subscription);
  void accept(Subscription& subscription, const PlannedEpoch& planned);
  void begin_epoch(Subscription& subscription, const EpochOutline& outline);
  void end_epoch(Subscription& subscription, std::uint64_t steps);
  void deliver(Subscription& subscription, const PlannedEpoch& planned, SlotIndex slot);
  void note_began(Epoch epoch);
  void count_delivery(Subscription& subscription, DeliveredFigures& figures, std::size_t bytes);
  void answer_questions();
  void request_plan(const PlanNeeds& needs);
  void forget_epochs(const PlanNeeds& needs);
  void assemble_demands();
  void assemble_ahead();
  void assemble(const SlotScheduler::Assignment& next, Urgency urgency);
  void refuse(Subscription& subscription, const Error& error);
  void refuse_all(const Error& error);
  void fail(const Error& error);

  // feed_core_live.cpp
  void await_step(const Subscription& subscription);
  bool refuse_if_gone(Subscription& subscription, const BatchId& id);
  void note_released(const Subscription& subscription);
  void take_limits(const LiveLimits& limits);
  void tend_live();
  void note_turn();

  // What all of them use.
  bool has_failed() const { return parts_.life.has_ended(); }
  const std::string& name() const { return parts_.settings.name; }
  static QueueService::Holder holder_of(const Subscription& subscription);
  void note_waiting(Subscription& subscription);
  std::uint64_t record_before(const Subscription& subscription) const;
  void send(std::uint64_t record, const SubscriptionKey& to, flatbuffers::DetachedBuffer message,
            bool is_ticket = false);
  void act_after(std::uint64_t record, const SubscriptionKey& to, FeedAction action);
  void close_records();
  void set_timer(FeedTimer timer, Time when);
  bool is_set(FeedTimer timer) const { return timer_of(timer).has_value(); }
  const std::optional<Time>& timer_of(FeedTimer timer) const {
    return timers_[static_cast<std::size_t>(timer)];
  }
  void act(FeedAction action) { actions_.push_back(std::move(action)); }
  template <Event kEvent, class... Args>
  void log(Args... args) {
    act(Log{[all = std::tuple<Args...>(std::move(args)...)](EventLog& log) {
      std::apply([&log](const Args&... each) { log.note<kEvent>(each...); }, all);
    }});
  }
  wire::EventT about(Epoch epoch, const std::string& text = {}) const;
  std::uint64_t batches_of(Epoch epoch) const {
    return parts_.plans.steps(epoch) * parts_.settings.plan.world;
  }
  /// Does `work`. An invariant that it breaks fails the feed.
  template <class Work>
  void guarded(Work work) {
    try {
      work();
    } catch (const std::logic_error& broken) {
      note_broken(broken.what());
    }
  }
  void note_broken(const std::string& what);

  FeedParts parts_;
  DataFacts facts_;
  Due due_;
  FeedCounters counters_;
  std::array<std::optional<Time>, kFeedTimers> timers_;
  std::vector<ReasonAsked> questions_;  ///< To be answered once all is handed out.
  std::vector<FeedAction> actions_;
  bool slots_grow_ = false;           ///< Larger ones were asked for.
  std::set<SubscriptionKey> unsaid_;  ///< That were sent something, and never got it.
  EventRing last_events_;
  Time now_{};
};

}  // namespace batchwright
