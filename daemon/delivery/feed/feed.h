#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
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
#include "daemon/delivery/feed/core/feed_core.h"
#include "daemon/delivery/feed/core/slots/slot_scheduler.h"
#include "daemon/delivery/feed/core/slots/upcoming_batches.h"
#include "daemon/delivery/feed/core/subscription_table.h"
#include "daemon/delivery/feed/feed_loop.h"
#include "daemon/delivery/feed/feed_resources.h"
#include "daemon/delivery/feed/growth.h"
#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/feed/live/producer_area.h"
#include "daemon/delivery/feed/plans/plan_store.h"
#include "daemon/delivery/feed/plans/planner.h"
#include "daemon/delivery/feed/queue/queue_service.h"
#include "daemon/delivery/feed/record_writer.h"
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
  /// It has failed for a reason that is_transient(). True: the server will end its subscriptions,
  /// not within this call.
  std::function<bool()> takes_over;
  /// Of a live feed: the rows that another feed's batches have had, by their fingerprint. Errors:
  /// those of Feed::rows_of(), not_found, or why that feed is absent.
  std::function<Result<std::shared_ptr<const StoredRows>>(const std::string& feed,
                                                          const Fingerprint& of)>
      rows_of = {};
};

/// A file system that a feed waits for.
struct Blockage {
  std::string by;  ///< What lies on it: "dataset PATH".
  WaitingTimes::Time since;
};
/// "the file system of dataset PATH has not answered for 7 s".
std::string describe(const Blockage& blockage, WaitingTimes::Time now);

/// Whether a file system blocks a feed. Threads: one at a time.
class BlockageWatch {
 public:
  using Time = WaitingTimes::Time;

  /// A feed whose file system does not answer for so long is blocked.
  static constexpr std::chrono::seconds kBlocked{5};
  /// Between two looks whether it is.
  static constexpr std::chrono::seconds kLook{1};

  /// What a look has changed.
  struct News {
    bool is_blocked = false;          ///< It was not, or by another.
    std::optional<Blockage> is_over;  ///< What has blocked it, and does no longer.
  };
  /// Notes what the feed waits for; empty: for no file system.
  News look(std::optional<Blockage> waits_for, Time now);
  /// What blocks the feed, as it was looked at last.
  const std::optional<Blockage>& blockage() const { return blockage_; }

 private:
  std::optional<Blockage> blockage_;
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

/// What a status has: everything, or all but a line for each client. What the lines add up to is in
/// both.
enum class Detail : std::uint8_t { all, without_clients };

/// One configured stream, from its plans to tickets. FeedCore decides; this turns calls and what
/// other threads have done into events, and carries out once a turn of the loop what it decides.
///
/// Threads: the event loop only. It outlives nothing it handed out: destroy the assembler first.
class Feed {
 public:
  Feed(ArenaNumber number, FeedSettings settings, FeedResources resources, FeedPorts ports);
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  ~Feed();

  /// Begins to assemble the first batches, before anyone asks.
  void start();

  /// Errors: invalid_argument, does_not_fit, fingerprint_mismatch, unsupported, or why the feed
  /// failed. What cannot be known before the epoch is planned is answered by a later Refused.
  Result<void> subscribe(const ClientInfo& client, const wire::Subscribe& request);
  void unsubscribe(SessionId session, SubscriptionNumber subscription);
  void release(SessionId session, const wire::Release& release);
  /// The session's subscriptions go. What it took from a queue is given to another, or kept for a
  /// while. How many slots stay held, until let_go(), because the process lives.
  std::size_t drop_session(SessionId session, SessionEnd how);
  /// The process of a session that ended lets go of the arenas, or is dead: its slots come back.
  void let_go(SessionId session);
  /// The session's process is dead: its slots are read no longer, and nothing is sent to it. Its
  /// leases stay until drop_session(), since its last words may say that they are done.
  void stop_serving(SessionId session);
  bool has(const SubscriptionKey& key) const { return parts().subscriptions.contains(key); }
  /// Whether the session takes batches from the queue.
  bool has_in_queue(SessionId session) const;
  /// Takes up what can change while it serves. What a subscription was granted stays.
  void adjust(const FeedSettings& wanted);
  /// Ends it: every subscription is refused with this error, and nothing is delivered any more.
  /// Batches that clients hold stay as they are. It is destroyed once it is at_rest().
  void retire(const Error& error);
  /// No other thread works for it any more, and no call back to it is under way.
  bool at_rest() const { return loop_.at_rest(); }
  /// What takes long to free. The holder may do so on another thread.
  std::vector<std::shared_ptr<const void>> resources() const;

  /// Answers with the reason why nothing comes.
  void ask(SessionId session, const wire::Ask& question);
  /// Answers with the batches that come next.
  void list_upcoming(SessionId session, const wire::ListUpcoming& question);
  /// The client's program waits, and holds so many batches.
  void waits(const SubscriptionKey& key, std::uint32_t holds);

  // Of a live feed.

  bool is_live() const { return settings().live.has_value(); }
  /// The client becomes a producer. Where it shares this host's memory it gets an area.
  void produce(const ClientInfo& client, const wire::Produce& request);
  /// `frame`: what came behind the message.
  void push(const ClientInfo& client, const wire::Push& push, std::span<const std::byte> frame);
  /// All else that its producers and trainers ask.
  void ask(const ClientInfo& client, LiveRequest request);
  bool has_producer(const ProducerKey& key) const {
    return is_live() && parts().live->producers().connected().contains(key);
  }
  /// An area of one of the session's producers; null when there is none.
  const ProducerArea* find_area(SessionId session, ArenaNumber number) const {
    return areas_.find(session, number);
  }

  /// The rows that its batches with this fingerprint have. Errors: fingerprint_mismatch (neither
  /// its newest data nor a plan that it keeps), invalid_argument (it is live), or why it failed.
  Result<std::shared_ptr<const StoredRows>> rows_of(const Fingerprint& of) const;

  wire::FeedInfoT info() const;
  const std::string& name() const { return parts().settings.name; }
  /// All that is shown of it.
  FeedStatus status(WaitingTimes::Time now, Detail detail = Detail::all) const;
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
  const FeedParts& parts() const { return core_.parts(); }
  const FeedSettings& settings() const { return parts().settings; }
  const Arena& arena() const { return *parts().scheduler.slots()->arena; }
  ArenaNumber arena_number() const { return parts().scheduler.slots()->number; }
  const SlotCache& slots() const { return parts().scheduler.cache(); }
  const Dataset& dataset() const { return *data_.dataset; }     ///< Of no live feed.
  const Snapshot& snapshot() const { return *data_.snapshot; }  ///< The same.
  const WorkQueue& queue() const { return parts().desk.queue(); }
  /// Why it no longer serves; empty while it does.
  const std::optional<Error>& failure() const { return parts().life.why(); }
  FeedState state() const { return parts().life.state(); }
  /// Memory that making rows takes beside the arena.
  std::uint64_t making_bytes() const {
    return data_.claimed_for_sound() + bytes_of(data_.row_cache);
  }

  // feed_status.cpp: what is shown of it.
  void add_reasons(FeedStatus& status, WaitingTimes::Time now) const;
  void add_data(FeedStatus& status) const;
  void add_totals(FeedStatus& status, WaitingTimes::Time now) const;
  void add_subscribers(FeedStatus& status, WaitingTimes::Time now) const;
  void add_queue(FeedStatus& status) const;

  // feed_live.cpp
  void start_live();
  void note_arena();

  StageTimes& stage_times() { return *style_->times; }
  std::shared_ptr<const BatchStyle> make_style(std::shared_ptr<StageTimes> times) const;

  // feed.cpp: events in, and what follows.
  void tell(FeedEvent event);
  void turn();
  void carry_out(const Send& action);
  void carry_out(const SendBatch& action);
  void carry_out(const Assemble& action);
  void carry_out(const ReadAhead& action);
  void carry_out(const MakePlan& action);
  void carry_out(WriteRecords& action);
  void carry_out(RecordSteps& action);
  void carry_out(const GrowSlots& action);
  void carry_out(const SetTimer& action);
  void carry_out(const Poison& action);
  void carry_out(const LookAtData& action);
  void carry_out(const Log& action) { action.note(ports_.log); }
  void carry_out(FreePlans& action) { let_go_elsewhere(std::move(action.plans)); }
  void carry_out(const Failed& action);

  // feed_data.cpp: what other threads are asked about the data.
  void plan_followed(const MakePlan& action);
  void grown(const MakePlan& asked, Result<GrownEpoch> result);
  std::shared_ptr<SlotGeneration> generation_of(LargerArena larger);
  void looked_at_data(const DatasetStanding& found);
  void watch_file_systems();
  std::optional<Blockage> waits_for_file_system() const;
  /// What may be the last of a dataset's data: their end may wait for its file system.
  template <class Data>
  void let_go_elsewhere(Data data) {
    auto free = [kept = std::move(data)]() mutable {
      static_cast<void>(Data(std::move(kept)));
      return true;
    };
    loop_.elsewhere(std::move(free), [](bool) {});
  }

  ArenaNumber number_;
  FeedCore core_;
  FeedData data_;
  ProducerAreas areas_;
  FeedPorts ports_;
  std::shared_ptr<const BatchStyle> style_;
  BlockageWatch blockage_;
  FeedState told_state_ = FeedState::starting;  ///< That on_state() was last called for.
  std::function<void()> on_state_;
  RecordWriter steps_;    ///< To the record of a live feed.
  RecordWriter records_;  ///< To journal and ledger.
  FeedLoop loop_;         ///< Last: it is joined before what it calls back to goes.
};

/// What a core goes by of the data and settings.
DataFacts facts_of(const FeedData& data, const FeedSettings& settings);

}  // namespace batchwright
