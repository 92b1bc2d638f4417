#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/stats/counters.h"
#include "daemon/stats/live_status.h"
#include "daemon/stats/stages.h"
#include "daemon/stats/verdict.h"
#include "daemon/stats/waiting_times.h"
#include "formats/formats.h"

namespace batchwright {

// What a feed and the server say of themselves at one moment, as plain values: Feed::status() and
// Server::status() make them, and pages, metrics, readiness and the command read nothing else.

/// One subscription of a feed, or a client that waits for an absent one.
struct SubscriberStatus {
  SessionId session;
  SubscriptionNumber subscription;
  std::string client;  ///< The name given by the client.
  std::uint32_t pid = 0;
  wire::Mode mode = wire::Mode::replica;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  Epoch epoch;  ///< Position of the next delivery.
  Step step;
  std::uint32_t window = 0;  ///< Batches granted.
  std::uint32_t held = 0;    ///< Batches delivered and not released.
  /// How long the client has held the oldest of these; empty: it holds none.
  std::optional<std::chrono::duration<double>> held_for;
  double waited_for_daemon_seconds = 0.0;  ///< The client, for the daemon.
  double waited_for_client_seconds = 0.0;  ///< Time the daemon waited for the client.
  WaitingFor waiting = WaitingFor::none;   ///< The side that is waited for right now.
  std::uint64_t lag_batches = 0;           ///< Batches behind the furthest subscriber of the feed.
  bool left_behind = false;                ///< It is served alone, the others went on without it.
  std::uint64_t delivered_batches = 0;
  std::uint64_t delivered_bytes = 0;
  double position_share = 0.0;  ///< Share of the epoch, 0 to 1.
};

/// Each slot is in one of these; together they are all slots of the arena.
struct SlotStats {
  std::uint32_t free = 0;
  std::uint32_t filling = 0;
  std::uint32_t ready = 0;  ///< Holds a batch that no subscriber holds.
  std::uint32_t held = 0;   ///< Holds a batch that at least one subscriber holds.
  std::uint32_t ahead =
      0;  ///< Of the ready ones, those with batches still to be delivered; the others are kept.
  std::uint32_t kept() const { return ready - ahead; }
};

/// The plan of one epoch that is being served.
struct PlanStats {
  Epoch epoch;
  std::uint64_t steps = 0;
  std::uint64_t batches = 0;
  std::uint64_t sequences = 0;      ///< Rows of all batches.
  std::uint64_t frames = 0;         ///< Real ones.
  std::uint64_t padded_frames = 0;  ///< Sum of B * L, so it includes the real ones.
  double zero_padding_rate = 0.0;   ///< ZPR, a fraction of one.
};

/// A batch of a queue that was begun again and again, and not done.
struct UndoneStats {
  Epoch epoch;
  std::uint64_t index = 0;
  std::uint32_t times = 0;  ///< That it was begun and not done.
  bool set_aside = false;   ///< It is no longer given.
};

/// Its first batches are being assembled; they are there; it no longer serves.
enum class FeedState : std::uint8_t { starting, serving, failed };

inline constexpr std::array kFeedStates{FeedState::starting, FeedState::serving, FeedState::failed};

const char* name_of(FeedState state);

/// How a feed's queue of batches stands.
struct QueueStatus {
  Epoch epoch;
  std::uint64_t done = 0;
  std::uint64_t out = 0;  ///< Given to workers, and not done.
};

/// All that is shown of one feed. It is a copy, except for the times of its stages.
struct FeedStatus {
  std::string name;
  ArenaNumber number;  ///< Of its first arena: no other feed of the server has or had it.
  ArenaNumber arena;   ///< By which clients ask for the arena that it has now.
  std::vector<std::filesystem::path> dataset;  ///< Paths of the shards.
  std::string_view dataset_lock = "none";      ///< "slot", "read-only" or "none".
  FeedState state = FeedState::starting;
  std::optional<Error> failure;  ///< Empty while it serves, and for an absent feed.
  std::string reason;     ///< Why a failed feed failed, what blocks it, or how its data are stale.
  std::string not_ready;  ///< Why its clients may get nothing; empty: they are served.
  bool retried = false;   ///< It is absent: not served, and the daemon tries again by itself.
  bool dataset_stale = false;    ///< The dataset's path no longer leads to the files that are read.
  std::string blocked_by;        ///< What lies on a file system that does not answer; empty: none.
  double blocked_seconds = 0.0;  ///< For how long it has not.
  FeedCounters counters;
  std::uint64_t sequences = 0;  ///< Sequences of the dataset.
  std::optional<Fingerprint> fingerprint;
  std::uint32_t world = 1;
  SlotStats slots;
  std::uint64_t slot_bytes = 0;
  std::uint64_t arena_bytes = 0;
  std::uint64_t making_bytes = 0;  ///< Memory that making rows takes beside it.
  std::string pinned;              ///< "none", "locked" or "cuda".
  std::string pages;               ///< "small", "transparent" or "reserved".
  std::vector<PlanStats> plans;    ///< Plans of the epochs that are served now.
  std::vector<SubscriberStatus> subscribers;
  QueueStatus queue;
  std::vector<UndoneStats> undone;  ///< Those of the queue's epoch that are worth a word.
  std::optional<LiveStatus> live;   ///< Empty: it has a dataset.
  /// They go on counting: threads that assemble add to them. Null: nothing took time.
  std::shared_ptr<const StageTimes> stages;
  double plan_seconds = 0.0;       ///< Time that the last plan took.
  WaitedSeconds waited;            ///< All subscriptions, those that are gone included.
  bool waits_for_plan = false;     ///< An epoch that a subscription stands in is not planned yet.
  std::uint32_t active = 0;        ///< Subscriptions that can still wait or be waited for.
  std::size_t slots_to_set = 0;    ///< With how many all could go on that wait for a slot now.
  std::size_t orphaned_slots = 0;  ///< Held by processes whose sessions have ended.
  // Of its last seconds; what takes samples adds these.
  Rates rates;
  const std::deque<PastRate>* past = nullptr;  ///< Lives as long as the call; null: there is none.
  Verdict verdict;
};

/// A disk that datasets are read from, as readahead found it.
struct ReadDiskStats {
  std::string device;                 ///< "MAJOR:MINOR".
  std::uint64_t under_way_bytes = 0;  ///< Asked for, and not there yet.
  std::uint64_t window_bytes = 0;     ///< Most that is under way at a time.
  double bytes_per_second = 0.0;      ///< Best recently.
  double latency_seconds = 0.0;       ///< Shortest of one read, recently.
};

/// What is brought into memory before it is assembled.
struct ReadaheadStats {
  std::uint64_t ahead_bytes = 0;  ///< For batches that are not assembled yet.
  std::uint64_t kept_bytes = 0;   ///< Left in memory where the datasets are larger than it.
  double pressure_share = 0.0;    ///< Of the last 10 s, for which programs waited for memory.
  std::vector<ReadDiskStats> disks;
};

/// A connected client.
struct SessionStatus {
  SessionId id;
  Abilities abilities;  ///< Those that it and this daemon have.
};

/// All that is shown of the server and its feeds.
struct ServerStatus {
  std::vector<FeedStatus> feeds;  ///< Those that are served, and then those that are absent.
  std::vector<SessionStatus> sessions;
  std::uint64_t memory_left_bytes = 0;  ///< For arenas, under the memory ceiling.
  unsigned assembly_threads = 1;
  std::string_view copy;  ///< The way by which batches are copied.
  ReadaheadStats readahead;
};

}  // namespace batchwright
