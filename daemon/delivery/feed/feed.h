#pragma once

#include <boost/asio/io_context.hpp>
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
#include "daemon/delivery/feed/absent_feed.h"
#include "daemon/delivery/feed/blockage.h"
#include "daemon/delivery/feed/core/feed_parts.h"
#include "daemon/delivery/feed/core/slot_scheduler.h"
#include "daemon/delivery/feed/core/subscription_table.h"
#include "daemon/delivery/feed/core/upcoming_batches.h"
#include "daemon/delivery/feed/feed_loop.h"
#include "daemon/delivery/feed/feed_resources.h"
#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/feed/plans/fitting_data.h"
#include "daemon/delivery/feed/plans/growth.h"
#include "daemon/delivery/feed/plans/plan_keeper.h"
#include "daemon/delivery/feed/plans/planner.h"
#include "daemon/delivery/feed/queue/queue_desk.h"
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
  std::shared_ptr<MemoryBudget> memory;  ///< For arenas that grow.
  EventLog& log;                         ///< Also tells clients that listen.
  /// It has failed for a reason that is_passing(). True: the server will end its subscriptions,
  /// not within this call.
  std::function<bool()> takes_over;
};

/// How a session ends.
struct Departure {
  bool may_return = false;  ///< A queue keeps what the client took, for a while.
  bool lives = false;       ///< Its process may still read the slots that it holds.
  bool died = false;  ///< It ended without a word: it may have begun the first batch it holds.
};

/// The plan of an epoch that is asked for. It keeps its data alive, so the feed may be removed
/// meanwhile.
struct PlanQuestion {
  std::string feed;
  Epoch epoch;
  FeedSettings settings;
  std::shared_ptr<const Snapshot> snapshot;
  std::shared_ptr<const EpochSource> planned;  ///< Null: the epoch is not planned yet.
};

/// One configured stream, from its plans to tickets: which batch is due to which client, which slot
/// it is assembled in, and which clients still hold it. It joins objects that decide (README.md):
/// it tells them what happened, and carries out what they decide.
///
/// Slots are filled for the nearest need first: what a subscription waits for, then what is next
/// in the order of distance from any cursor. A batch further away never pushes out a nearer one.
/// Threads: the event loop only. It outlives nothing it handed out: destroy the assembler first.
class Feed {
 public:
  Feed(ArenaNumber number, FeedSettings settings, FeedResources resources, FeedPorts ports);

  /// Begins to assemble the first batches, before anyone asks.
  void start();

  /// Errors: invalid_argument, does_not_fit, fingerprint_mismatch, unsupported, or why the feed
  /// failed. What cannot be known before the epoch is planned is answered by a later Refused.
  Result<void> subscribe(const ClientInfo& client, const wire::Subscribe& request);
  void unsubscribe(SessionId session, SubscriptionNumber subscription);
  void release(SessionId session, const wire::Release& release);
  /// The session's subscriptions go. What it took from a queue is given to another, or kept for a
  /// while. How many slots stay held, until let_go(), because the process lives.
  std::size_t drop_session(SessionId session, Departure departure);
  /// The process of a session that ended lets go of the arenas, or is dead: its slots come back.
  void let_go(SessionId session);
  /// The session's process is dead: its slots are read no longer, and nothing is sent to it. Its
  /// leases stay until drop_session(), since its last words may say that they are done.
  void stop_serving(SessionId session);
  bool has(const SubscriptionKey& key) const { return parts_.subscriptions.contains(key); }
  /// Whether the session takes batches from the queue.
  bool has_in_queue(SessionId session) const;
  /// Takes up what can change while it serves. What a subscription was granted stays.
  void adjust(const FeedAdjustments& wanted);
  /// Ends it: every subscription is refused with this error, and nothing is delivered any more.
  /// Batches that clients hold stay as they are. It is destroyed once it is at_rest().
  void retire(const Error& error);
  /// No other thread works for it any more, and no call back to it is under way.
  bool at_rest() const { return loop_.at_rest(); }
  /// What takes long to free. Whoever keeps it may do so on another thread.
  std::vector<std::shared_ptr<const void>> belongings() const;

  /// Answers with the reason why nothing comes.
  void ask(SessionId session, const wire::Ask& question);
  /// The client's program waits, and holds so many batches.
  void waits(const SubscriptionKey& key, std::uint32_t holds);

  wire::FeedInfoT info() const;
  const std::string& name() const { return parts_.settings.name; }
  /// All that is shown of it.
  FeedStatus status(WaitingTimes::Time now) const;
  /// What the plan of an epoch is made of; without one, of the first that is served: it costs no
  /// planning, and is what clients are getting.
  PlanQuestion plan_question(std::optional<Epoch> epoch) const;
  /// An arena of this feed by its number; null when there is none, or not any more.
  const Arena* find_arena(ArenaNumber number) const;
  /// Looks what has become of the dataset's files, and tells `found` on the loop: late, where their
  /// file system does not answer.
  void ask_standing(std::function<void(DatasetStanding)> found);
  /// Called whenever the state has changed: serving once the first batch is there, failed as soon
  /// as there is a reason.
  void on_state(std::function<void()> callback) { on_state_ = std::move(callback); }

 private:
  // feed_status.cpp: what is shown of it.
  void add_reasons(FeedStatus& status, WaitingTimes::Time now) const;
  void add_data(FeedStatus& status) const;
  void add_subscribers(FeedStatus& status, WaitingTimes::Time now) const;
  void add_queue(FeedStatus& status) const;

  // feed_subscribe.cpp: which clients may subscribe, and to what.
  Result<Share> share_of(const wire::Subscribe& request) const;
  Result<void> check_subscribe(const SubscriptionKey& key, const wire::Subscribe& request) const;
  Result<void> check_extras(const wire::Subscribe& request) const;
  Result<void> check_ranks(const ClientInfo& client, const wire::Subscribe& request) const;
  Result<void> check_beside_jobs() const;
  Result<void> check_fingerprint(const wire::Subscribe& request) const;
  bool keep_data(const wire::Subscribe& request);
  bool is_in_use(Epoch epoch) const;
  Result<void> claim(Subscription& subscription, const wire::Subscribe& request);

  /// What has changed, and so is to be looked at before the turn ends.
  struct Due {
    bool slots = true;     ///< Another batch may be due, or a slot have come free.
    bool plans = true;     ///< Another plan may be needed.
    bool epochs = false;   ///< A plan may be needed no longer.
    std::size_t turn = 0;  ///< Which subscription is served first, in rotation.
  };

  // feed.cpp: what it is made of, and what comes back.
  StageTimes& stage_times() { return *style_->times; }
  std::shared_ptr<const BatchStyle> make_style(std::shared_ptr<StageTimes> times) const;
  const EpochSource& first_epoch() const { return *data_.first_epoch.source; }
  const Arena& arena() const { return *parts_.scheduler.slots()->arena; }
  ArenaNumber arena_number() const { return parts_.scheduler.slots()->number; }
  const SlotCache& slots() const { return parts_.scheduler.cache(); }
  const Dataset& dataset() const { return *data_.dataset; }
  const Snapshot& snapshot() const { return *data_.snapshot; }
  const WorkQueue& queue() const { return parts_.desk.queue(); }
  /// Why it no longer serves; empty while it does.
  const std::optional<Error>& failure() const { return parts_.life.why(); }
  /// Memory that making rows takes beside the arena.
  std::uint64_t making_bytes() const {
    return data_.claimed_for_sound() + bytes_of(data_.row_cache);
  }
  static QueueDesk::Holder holder_of(const Subscription& subscription);
  void after_leaving();
  void await_returns();
  void give_back(const SlotRef& slot);
  void release_leases(Subscription& subscription, const wire::Release& release);
  void end_leases_but(Subscription& subscription, const std::set<std::uint64_t>& stays);
  void release_lease(Subscription& subscription, LeaseNumber lease, bool undone);
  void step_back(Subscription& subscription);
  void end_but(const SubscriptionKey& key, const wire::Release& held);
  void note_undone(const QueueDesk::Undone& batch);
  void leave(const SubscriptionKey& key, Departure departure);
  /// A journal or ledger with a gap would be worse than none.
  template <class Value>
  bool written(const Result<Value>& result) {
    if (!result) fail(result.error());
    return static_cast<bool>(result);
  }

  // feed_end.cpp: how it changes in place, and how it ends.
  void end_subscriptions(const Error& error);

  // feed_serve.cpp: what waits until its records are with the kernel.
  void write_records();
  std::uint64_t record_before(const Subscription& subscription) const;
  void send_behind(std::uint64_t record, const SubscriptionKey& key, std::function<void()> send,
                   std::function<void()> drop = nullptr);
  void send(std::uint64_t record, const SubscriptionKey& key, flatbuffers::DetachedBuffer message);
  bool has_ticket(const HeldBatch& batch) const;

  // feed_turn.cpp: which clients an event concerns. feed_serve.cpp: what each is told next.
  void pump();
  void pump_soon();
  void settle();
  void settle_soon();
  void serve(const SubscriptionKey& key);
  void serve_all(std::vector<SubscriptionKey> keys);
  void serve_barred();
  bool serve_next(const SubscriptionKey& key, Subscription& subscription);
  void accept(const SubscriptionKey& key, Subscription& subscription, const EpochSource& source);
  void begin_epoch(const SubscriptionKey& key, Subscription& subscription,
                   const EpochSource& source);
  void end_epoch(const SubscriptionKey& key, Subscription& subscription, std::uint64_t steps);
  void advance_queue();
  void queue_begun(Epoch epoch, Result<BegunJournal> begun);
  void deliver(const SubscriptionKey& key, Subscription& subscription, const EpochSource& source,
               SlotIndex slot);
  void count_delivery(Subscription& subscription, DeliveredFigures& figures, std::size_t bytes);
  void refuse(Subscription& subscription, const Error& error);
  void refuse_all(const Error& error);
  void fail(const Error& error);

  // feed_waits.cpp: subscriptions that wait.
  void note_waiting(Subscription& subscription);
  void watch();
  void look_at_waits(WaitingTimes::Time now);
  void watch_file_systems();
  std::optional<Blockage> waits_for_file_system() const;

  // feed_slots.cpp: what becomes of the scheduler's decisions.
  void assemble_demands();
  void assemble_ahead();
  void leave_behind(const std::vector<Stragglers::LeftBehind>& left_behind);
  void end_turn();
  void look_again();
  void assemble(const SlotScheduler::Assignment& next, Urgency urgency);
  void read_ahead(const EpochSource& source, BatchIndex index);
  void discard(const SlotScheduler::Assignment& done);
  void note_first_batch();
  bool is_first(const BatchId& id) const;
  bool bars_all(const BatchId& id, const Error& error) const;
  void assembled(const SlotScheduler::Assignment& done, Result<AssembledBatch> batch);
  void not_assembled(const SlotScheduler::Assignment& done, const Error& error);
  void count_assembled(const BatchId& id, const AssembledBatch& batch);
  void count_overflows(const BatchId& id, const CastLoss& lost);
  void count_lost(const BatchId& id, const SkippedSequence& skipped);

  // feed_data.cpp: whether the dataset's files are still those that it reads.
  void look_at_data();
  void looked_at_data(const DatasetStanding& found);

  // feed_plans.cpp: what becomes of the decisions on plans.
  void request_plan();
  void request_plan_at(PlanTurns::Time when);
  void plan(Epoch epoch);
  void plan_followed(Epoch epoch);
  void grown(Epoch epoch, std::optional<std::uint64_t> asked, Result<GrownEpoch> grown);
  PlannedEpoch take_up(Epoch epoch, GrownEpoch grown);
  void planned(Epoch epoch, Result<PlannedEpoch> result);
  void end_without_data(Epoch epoch, const Error& error);
  void forget_epochs();
  /// What may be the last of a dataset's data: their end may wait for its file system.
  template <class Data>
  void let_go_elsewhere(Data data) {
    auto free = [kept = std::move(data)]() mutable {
      static_cast<void>(Data(std::move(kept)));
      return true;
    };
    loop_.elsewhere(std::move(free), [](bool) {});
  }
  std::uint64_t steps_of(Epoch epoch) const { return parts_.plans.steps(epoch); }
  std::uint64_t batches_of(Epoch epoch) const {
    return steps_of(epoch) * parts_.settings.plan.world;
  }
  wire::EventT about(Epoch epoch, const std::string& text = {}) const;
  void note_began(Epoch epoch);
  void note_ended(Epoch epoch);

  ArenaNumber number_;
  FeedParts parts_;
  FeedData data_;
  FeedPorts ports_;
  std::shared_ptr<const BatchStyle> style_;
  Due due_;
  FeedCounters counters_;
  BlockageWatch blockage_;
  std::function<void()> on_state_;
  FeedLoop loop_;  ///< Last: it is joined before what it calls back to goes.
};

}  // namespace batchwright
