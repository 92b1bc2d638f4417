#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/client_info.h"
#include "daemon/delivery/cursor.h"
#include "daemon/delivery/epochs.h"
#include "daemon/delivery/feed_resources.h"
#include "daemon/delivery/planner.h"
#include "daemon/delivery/subscription.h"
#include "daemon/planning/planning.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {

/// What one delivery of the batch in a slot adds to the counters.
struct DeliveredFigures {
  std::uint32_t rows = 0;
  std::uint64_t frames = 0;
  std::uint64_t padded_frames = 0;
  std::uint64_t deliveries = 0;  ///< So far.
};

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
  /// Tells whoever listens to events. It never waits, and may get lost.
  std::function<void(wire::EventT)> publish;
};

/// One configured stream, from its plans to tickets: which batch is due to whom, which slot it is
/// assembled in, and who still holds it.
///
/// Slots are filled for the nearest need first: what a subscription waits for, then what is next
/// in the order of distance from any cursor. A batch further away never pushes out a nearer one.
/// Threads: the event loop only. It outlives nothing it handed out: destroy the assembler first.
class Feed {
 public:
  Feed(std::uint32_t arena, FeedSettings settings, FeedResources resources, FeedPorts ports);

  /// Begins to assemble the first batches, before anyone asks.
  void start();

  /// Errors: invalid_argument, fingerprint_mismatch, unsupported, or why the feed failed. What
  /// cannot be known before the epoch is planned is answered by a later Refused.
  Result<void> subscribe(const ClientInfo& client, const wire::Subscribe& request);
  void unsubscribe(SessionId session, std::uint32_t subscription);
  void release(SessionId session, const wire::Release& release);
  /// Everything the session held comes back.
  void drop_session(SessionId session);

  wire::FeedInfoT info() const;
  const std::string& name() const { return settings_.name; }
  const Arena& arena() const { return *resources_.arena; }
  const FeedCounters& counters() const { return counters_; }
  const SlotCache& slots() const { return cache_; }
  const Subscriptions& subscriptions() const { return subscriptions_; }
  const Snapshot& snapshot() const { return *resources_.snapshot; }
  const FeedSettings& settings() const { return settings_; }
  Fingerprint fingerprint() const { return first_epoch().fingerprint; }
  /// The planned epochs that are served now or next.
  std::vector<PlannedEpoch> epochs() const { return epochs_.all(); }
  /// Why the feed no longer serves; empty while it does.
  const std::optional<Error>& failure() const { return failure_; }
  /// The first batches are there, or will never be.
  bool ready() const { return ready_; }
  /// Called once, when ready() becomes true.
  void on_ready(std::function<void()> callback) { on_ready_ = std::move(callback); }

 private:
  const EpochSource& first_epoch() const { return *resources_.first_epoch.source; }
  void pump();
  void pump_soon();
  void serve(const SubscriptionKey& key, Subscription& subscription);
  bool serve_next(const SubscriptionKey& key, Subscription& subscription);
  void accept(const SubscriptionKey& key, Subscription& subscription, const EpochSource& source);
  void end_epoch(const SubscriptionKey& key, Subscription& subscription, std::uint64_t steps);
  void deliver(const SubscriptionKey& key, Subscription& subscription, SlotIndex slot);
  void give_back(SlotIndex slot);
  Result<Share> share_of(const wire::Subscribe& request) const;
  Result<void> check_subscribe(const SubscriptionKey& key, const wire::Subscribe& request) const;

  bool may_take(const Subscription& subscription, const BatchId& id) const;
  std::size_t needy() const;
  bool is_held(const BatchId& id) const;
  std::optional<BatchId> demand_of(const Subscription& subscription) const;
  void prefetch();
  bool assemble(const BatchId& id, std::uint64_t distance);
  std::optional<SlotIndex> slot_for(const BatchId& id, std::uint64_t distance);
  std::set<BatchId> due(std::uint64_t distance) const;
  bool wanted(const BatchId& id, std::uint64_t within) const;
  void read_ahead(const EpochSource& source, BatchIndex index);
  void assembled(SlotIndex slot, const BatchId& id, Result<AssembledBatch> batch);
  void count_assembled(const BatchId& id, const AssembledBatch& batch);

  std::set<Epoch> needed_epochs(bool with_next) const;
  std::size_t most_epochs() const;
  void request_plan();
  void planned(Epoch epoch, Result<PlannedEpoch> result);
  void forget_epochs();
  std::uint64_t steps_of(Epoch epoch) const;
  void fail(const Error& error);
  void refuse(const SubscriptionKey& key, Subscription& subscription, const Error& error);

  std::uint32_t arena_number_;
  FeedSettings settings_;
  FeedResources resources_;
  FeedPorts ports_;
  std::shared_ptr<const BatchStyle> style_;
  SlotCache cache_;
  Subscriptions subscriptions_;
  Epochs epochs_;
  std::map<BatchId, Error> broken_;  ///< Batches that could not be assembled; met when due.
  std::map<Epoch, Error> unplannable_;
  std::vector<DeliveredFigures> figures_;  ///< Per slot, of the batch in it.
  std::optional<Error> failure_;
  FeedCounters counters_;
  std::function<void()> on_ready_;
  std::uint64_t next_lease_ = 1;
  std::uint32_t filling_ = 0;
  std::size_t turn_ = 0;  ///< Which subscription is served first, in rotation.
  bool had_subscriber_ = false;
  bool planning_ = false;  ///< One plan of a feed is under way at a time.
  bool pump_posted_ = false;
  bool ready_ = false;
};

}  // namespace batchwright
