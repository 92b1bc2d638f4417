#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/client_info.h"
#include "daemon/delivery/cursor.h"
#include "daemon/delivery/epochs.h"
#include "daemon/delivery/feed_resources.h"
#include "daemon/delivery/growth.h"
#include "daemon/delivery/planner.h"
#include "daemon/delivery/slot_generation.h"
#include "daemon/delivery/subscription.h"
#include "daemon/planning/planning.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {

/// The threads a feed hands work to, and the way out to its clients.
struct FeedPorts {
  boost::asio::io_context& loop;
  Planner& planner;
  Assembler& assembler;
  Readahead& readahead;
  unsigned assembly_threads;
  /// Sends one control message to a session. It may find the session gone; then nothing happens.
  std::function<void(SessionId, const flatbuffers::DetachedBuffer&)> send;
  /// Sends a ticket with the batch behind it. `sent` is called on the loop, later and exactly
  /// once, when the bytes are needed no more, whether they arrived or not.
  std::function<void(SessionId, const flatbuffers::DetachedBuffer&, std::span<const std::byte>,
                     std::function<void()>)>
      send_batch;
  /// Tells whoever listens of an event; never waits.
  std::function<void(wire::EventT)> publish;
  std::shared_ptr<MemoryBudget> memory;  ///< For arenas that grow.
  EventLog& log;
};

/// How long the subscriptions of a feed waited, those that are gone included.
struct WaitedSeconds {
  double clients = 0.0;  ///< For the daemon.
  double daemon = 0.0;   ///< For a client.
};

/// One configured stream, from its plans to tickets: which batch is due to whom, which slot it is
/// assembled in, and who still holds it.
///
/// Slots are filled for the nearest need first: what a subscription waits for, then what is next
/// in the order of distance from any cursor. A batch further away never pushes out a nearer one.
/// Threads: the event loop only. It outlives nothing it handed out: destroy the assembler first.
class Feed {
 public:
  Feed(std::uint32_t number, FeedSettings settings, FeedResources resources, FeedPorts ports);

  /// Begins to assemble the first batches, before anyone asks.
  void start();

  /// Errors: invalid_argument, does_not_fit, fingerprint_mismatch, unsupported, or why the feed
  /// failed. What cannot be known before the epoch is planned is answered by a later Refused.
  Result<void> subscribe(const ClientInfo& client, const wire::Subscribe& request);
  void unsubscribe(SessionId session, std::uint32_t subscription);
  void release(SessionId session, const wire::Release& release);
  /// Everything the session held comes back; what was a queue's, to be given to another. With
  /// `may_return` a queue keeps it for a while.
  void drop_session(SessionId session, bool may_return);
  /// Whether the session takes batches from the queue.
  bool has_in_queue(SessionId session) const;
  /// Takes up those settings that concern no batch: max_window, max_lead, poison, on_corrupt,
  /// queue_grace. What a subscription was granted stays.
  void adjust(const FeedSettings& settings);
  /// Ends it: every subscription is refused with this error, and nothing is delivered any more.
  /// Batches that clients hold stay as they are. It is destroyed once it is at_rest().
  void retire(const Error& error);
  /// No other thread works for it any more, and no call back to it is under way.
  bool at_rest() const { return filling_ == 0 && under_way_ == 0 && !planning_ && !pump_posted_; }
  /// What takes long to free. Whoever keeps it may do so on another thread.
  std::vector<std::shared_ptr<const void>> belongings() const;

  /// Answers with the reason why nothing comes.
  void ask(SessionId session, const wire::Ask& question);

  wire::FeedInfoT info() const;
  const std::string& name() const { return settings_.name; }
  /// No other feed of the server has or had it.
  std::uint32_t number() const { return number_; }
  const Arena& arena() const { return *slots_->arena; }
  /// By which clients ask for the arena: the feed's number and, above it, the arena's.
  std::uint32_t arena_number() const { return slots_->number; }
  /// An arena of this feed by its number; null when there is none, or not any more.
  const Arena* find_arena(std::uint32_t number) const;
  const FeedCounters& counters() const { return counters_; }
  const StageTimes& times() const { return *times_; }
  double plan_seconds() const { return plan_seconds_; }  ///< What the latest plan took.
  WaitedSeconds waited(WaitingTimes::Time now) const;
  /// Whether nothing can come before an epoch is planned.
  bool waits_for_plan(const Subscription& subscription) const;
  /// How many batches of its own a subscription is behind another, as far as that can be told.
  std::uint64_t batches_behind(const Subscription& one, const Subscription& other) const;
  const SlotCache& slots() const { return slots_->cache; }
  const Subscriptions& subscriptions() const { return subscriptions_; }
  const Dataset& dataset() const { return *resources_.dataset; }
  const Snapshot& snapshot() const { return *resources_.snapshot; }
  std::shared_ptr<const Snapshot> share_snapshot() const { return resources_.snapshot; }
  const FeedSettings& settings() const { return settings_; }
  const WorkQueue& queue() const { return resources_.queue; }
  Fingerprint fingerprint() const { return first_epoch().fingerprint; }
  /// The planned epochs that are served now or next.
  std::vector<PlannedEpoch> epochs() const { return epochs_.all(); }
  /// Why the feed no longer serves; empty while it does.
  const std::optional<Error>& failure() const { return failure_; }
  /// Serving once the first batch is there, failed as soon as there is a failure().
  FeedState state() const;
  /// Called whenever the state has changed.
  void on_state(std::function<void()> callback) { on_state_ = std::move(callback); }

 private:
  // feed_subscribe.cpp: who may subscribe, and to what.
  Result<Share> share_of(const wire::Subscribe& request) const;
  Result<void> check_subscribe(const SubscriptionKey& key, const wire::Subscribe& request) const;
  Result<void> check_extras(const wire::Subscribe& request) const;
  Result<void> check_ranks(const ClientInfo& client, const wire::Subscribe& request) const;
  Result<void> check_fingerprint(const wire::Subscribe& request) const;
  void keep_data(const wire::Subscribe& request);
  bool is_in_use(Epoch epoch) const;
  Result<void> claim(Subscription& subscription, const wire::Subscribe& request);

  // feed.cpp: what it is made of, and what comes back.
  std::shared_ptr<const BatchStyle> make_style() const;
  const EpochSource& first_epoch() const { return *resources_.first_epoch.source; }
  WorkQueue& work() { return resources_.queue; }
  Result<void> note_done(const ClientInfo& client, std::uint64_t lease, QueueOwner owner);
  void after_leaving();
  void await_returns();
  void give_back(const SlotRef& slot);
  void release_lease(Subscription& subscription, std::uint64_t lease);
  void leave(Subscription& subscription, bool may_return);
  bool written(const Result<void>& result);

  // feed_end.cpp: how it changes in place, and how it ends.
  void end_subscriptions(const Error& error);

  // feed_serve.cpp: what each subscription is told next.
  void pump();
  void pump_soon();
  void serve(const SubscriptionKey& key, Subscription& subscription);
  bool serve_next(const SubscriptionKey& key, Subscription& subscription);
  void accept(const SubscriptionKey& key, Subscription& subscription, const EpochSource& source);
  bool is_over(const Subscription& subscription, std::uint64_t steps) const;
  void begin_epoch(const SubscriptionKey& key, Subscription& subscription,
                   const EpochSource& source);
  void end_epoch(const SubscriptionKey& key, Subscription& subscription, std::uint64_t steps);
  void advance_queue();
  void deliver(const SubscriptionKey& key, Subscription& subscription, const EpochSource& source,
               SlotIndex slot);
  bool record(const Subscription& subscription, const EpochSource& source, std::uint64_t lease,
              const BatchId& id);
  void count_delivery(Subscription& subscription, DeliveredFigures& figures, std::size_t bytes);
  void refuse(const SubscriptionKey& key, Subscription& subscription, const Error& error);
  void fail(const Error& error);

  // waiting.cpp: what bounds a subscription.
  std::optional<BatchId> next_of(const Subscription& subscription) const;
  bool may_take(const Subscription& subscription, const BatchId& id) const;
  bool leads_too_far(const Subscription& subscription) const;
  std::optional<std::uint64_t> steps_ahead(const Subscription& one, const Subscription& of) const;
  std::size_t needy() const;
  bool is_held(const BatchId& id) const;
  std::string reason_to_wait(const Subscription& subscription) const;
  WaitingFor waiting_for(const Subscription& subscription) const;
  void note_waiting(Subscription& subscription);
  void keep_waited(const Subscription& subscription);
  std::string who_holds_slots() const;

  // feed_slots.cpp: which batches are assembled, when, and in which slots.
  std::optional<BatchId> demand_of(const Subscription& subscription) const;
  void prefetch();
  bool assemble(const BatchId& id, std::uint64_t away, const Subscription* waiting);
  std::optional<SlotIndex> slot_due_in(std::uint64_t away, const BatchId& id);
  std::optional<SlotIndex> slot_on_demand(const Subscription& waiting, const BatchId& id);
  void note_slot(bool found);
  void find_fronts();
  std::set<BatchId> due(std::uint64_t distance) const;
  std::optional<BatchId> ahead(const Subscription& subscription, std::uint64_t distance) const;
  std::optional<SlotIndex> take_slot(const BatchId& id, const std::vector<std::uint64_t>& kept);
  std::optional<std::uint64_t> distance(const Subscription& subscription, const BatchId& id) const;
  void read_ahead(const EpochSource& source, BatchIndex index);
  void discard(const SlotRef& slot);
  void note_first_batch();
  bool is_first(const BatchId& id) const;
  bool bars_all(const BatchId& id, const Error& error) const;
  void assembled(const SlotRef& slot, const BatchId& id, Result<AssembledBatch> batch);
  void count_assembled(const BatchId& id, const AssembledBatch& batch);

  // stragglers.cpp: who is waited for, for a moment, before its batches leave the slots.
  std::uint64_t keeps_before(const Subscription& subscription, const BatchId& id) const;
  std::uint64_t reach() const;
  bool await_stragglers(const Subscription& ahead, const BatchId& id);
  void look_again();
  void note_stragglers();
  bool has_caught_up(const Subscription& subscription) const;

  // feed_plans.cpp: which epochs are planned.
  std::set<Epoch> needed_epochs(bool with_next) const;
  std::size_t most_epochs() const;
  void request_plan();
  void plan(Epoch epoch);
  void plan_followed(Epoch epoch);
  Result<PlannedEpoch> take_up(Epoch epoch, Result<GrownEpoch> grown);
  void planned(Epoch epoch, Result<PlannedEpoch> result);
  void not_planned(Epoch epoch, const Error& error);
  void forget_epochs();
  std::uint64_t steps_of(Epoch epoch) const { return epochs_.steps(epoch); }
  std::uint64_t batches_of(Epoch epoch) const { return steps_of(epoch) * settings_.plan.world; }
  void publish(wire::EventKind kind, Epoch epoch, const std::string& text = {});
  void publish_epoch(wire::EventKind kind, Epoch epoch);

  std::uint32_t number_;
  FeedSettings settings_;
  FeedResources resources_;
  FeedPorts ports_;
  std::shared_ptr<StageTimes> times_ = std::make_shared<StageTimes>();  ///< Other threads add.
  std::shared_ptr<const BatchStyle> style_;
  std::shared_ptr<SlotGeneration> slots_;  ///< Where batches are assembled.
  std::vector<std::weak_ptr<SlotGeneration>> generations_;
  Subscriptions subscriptions_;
  std::vector<const Subscription*> fronts_;  ///< One for all that stand at the same place.
  /// Slots kept for who has nothing, and for ranks to come; as counted since somebody last moved.
  mutable std::optional<std::size_t> needy_;
  Epochs epochs_;
  std::map<BatchId, Error> broken_;  ///< Batches that could not be assembled; met when due.
  std::map<Epoch, Error> unplannable_;
  std::map<Epoch, std::uint64_t> contents_;  ///< The data each epoch has, where that is decided.
  std::optional<Error> failure_;
  FeedCounters counters_;
  double plan_seconds_;
  WaitedSeconds waited_before_;                    ///< Of subscriptions that are gone.
  std::optional<WaitingTimes::Time> slot_wanted_;  ///< Since when the next batch waits for a slot.
  std::function<void()> on_state_;
  boost::asio::steady_timer grace_;     ///< Ends what a queue keeps for clients that are away.
  boost::asio::steady_timer patience_;  ///< Ends a wait for stragglers.
  bool looking_again_ = false;          ///< The timer above runs.
  /// A timer's handler that is due already cannot be called back: it looks whether this is there.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
  std::uint64_t next_lease_;
  Epoch last_stood_in_;  ///< The earliest that somebody stood in when it was looked at last.
  std::optional<Epoch> last_begun_;  ///< The furthest epoch that events told of, and that ended.
  std::optional<Epoch> last_ended_;
  std::uint64_t without_faults_ = 0;  ///< Batches in a row that were assembled so.
  std::uint32_t filling_ = 0;
  std::uint32_t under_way_ = 0;  ///< Batches that are sent or poisoned just now.
  std::size_t turn_ = 0;         ///< Which subscription is served first, in rotation.
  bool had_subscriber_ = false;
  bool planning_ = false;  ///< One plan of a feed is under way at a time.
  bool pump_posted_ = false;
  bool has_first_batch_ = false;
  bool retired_ = false;
};

}  // namespace batchwright
