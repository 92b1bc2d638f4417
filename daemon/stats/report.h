#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/stats/counters.h"
#include "daemon/stats/events.h"
#include "daemon/stats/process_stats.h"
#include "daemon/stats/stages.h"
#include "daemon/stats/verdict.h"
#include "daemon/stats/waiting_times.h"
#include "formats/formats.h"

namespace batchwright {

// What /stats and /metrics show, as plain values, which the daemon fills in once a request.

struct SubscriberStats {
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
  bool set_aside = false;   ///< It is given to nobody any more.
};

/// Its first batches are being assembled; they are there; it no longer serves.
enum class FeedState : std::uint8_t { starting, serving, failed };

inline constexpr std::array kFeedStates{FeedState::starting, FeedState::serving, FeedState::failed};

const char* name_of(FeedState state);

struct FeedStats {
  std::string name;
  std::vector<std::string> dataset;        ///< Paths of the shards.
  std::string_view dataset_lock = "none";  ///< "slot", "read-only" or "none".
  FeedState state = FeedState::starting;
  std::string reason;    ///< Why a failed feed failed, what blocks it, or how its data are stale.
  bool retried = false;  ///< It is not served, and the daemon tries again by itself.
  bool dataset_stale = false;    ///< The dataset's path no longer leads to the files that are read.
  std::string blocked_by;        ///< What lies on a file system that does not answer; empty: none.
  double blocked_seconds = 0.0;  ///< For how long it has not.
  const FeedCounters* counters = nullptr;  ///< Lives as long as the call; null: all are 0.
  std::uint64_t sequences = 0;             ///< Sequences of the dataset.
  std::string fingerprint;
  std::uint32_t world = 1;
  SlotStats slots;
  std::uint64_t slot_bytes = 0;
  std::uint64_t arena_bytes = 0;
  std::uint64_t making_bytes = 0;  ///< Memory that making rows takes beside it.
  std::string pinned;              ///< "none", "locked" or "cuda".
  std::string pages;               ///< "small", "transparent" or "reserved".
  std::vector<PlanStats> plans;    ///< Plans of the epochs that are served now.
  std::vector<SubscriberStats> subscribers;
  std::vector<UndoneStats> undone;     ///< Those of the queue's epoch that are worth a word.
  const StageTimes* stages = nullptr;  ///< Lives as long as the call; null: nothing took time.
  double plan_seconds = 0.0;           ///< Time that the last plan took.
  Rates rates;
  const std::deque<PastRate>* past = nullptr;  ///< Lives as long as the call; null: there is none.
  Verdict verdict;
};

/// The program's version and build.
struct BuildStats {
  std::string compiler;
  bool cuda = false;
};

/// Changes of the configuration while the daemon ran.
struct ReloadStats {
  std::uint64_t applied = 0;
  std::uint64_t refused = 0;
  double taken_unix_seconds = 0.0;          ///< Time at which the served configuration was taken.
  std::optional<std::string> last_refusal;  ///< Why; kept until one is applied.
  std::optional<std::chrono::duration<double>>
      last_ago;  ///< Time since the last one, applied or not.
};

/// The figures of the HTTP server.
struct HttpStats {
  std::uint32_t connections = 0;  ///< Open now.
  std::uint64_t requests = 0;     ///< Answered with a page.
  std::uint64_t refused = 0;      ///< Answered with an error (400 and up), or not at all.
};

/// The disk that a feed's journal or ledger lies on.
struct DiskStats {
  std::string feed;
  std::string_view file;         ///< "journal" or "ledger".
  std::string path;              ///< Path of the file.
  std::uint64_t free_bytes = 0;  ///< Left for users other than root.
  std::uint64_t size_bytes = 0;  ///< Size of the file system.
};

/// A disk that datasets are read from, as readahead found it.
struct ReadDiskStats {
  std::string device;                 ///< "MAJOR:MINOR".
  std::uint64_t under_way_bytes = 0;  ///< Asked for, and not there yet.
  std::uint64_t window_bytes = 0;     ///< Most that is under way at a time.
  double bytes_per_second = 0.0;      ///< Best of late.
  double latency_seconds = 0.0;       ///< Shortest of one read, of late.
};

/// What is brought into memory before it is assembled.
struct ReadaheadStats {
  std::uint64_t ahead_bytes = 0;  ///< For batches that are not assembled yet.
  std::uint64_t kept_bytes = 0;   ///< Left in memory where the datasets are larger than it.
  double pressure_share = 0.0;    ///< Of the last 10 s, for which programs waited for memory.
  std::vector<ReadDiskStats> disks;
};

/// Something that keeps the daemon from being ready.
struct NotReady {
  std::string feed;  ///< Empty: it concerns all of them.
  std::string why;
};

struct StatsSource {
  std::string version;
  std::string commit;     ///< That it was built from; empty: from no checkout.
  std::string host;       ///< This machine's name.
  std::uint32_t uid = 0;  ///< The user that it runs as.
  std::chrono::duration<double> uptime{0};
  std::chrono::steady_clock::time_point started{};
  double started_unix_seconds = 0.0;  ///< Start time since 1970.
  ProcessStats process;
  std::uint64_t memory_ceiling_bytes = 0;
  std::uint64_t arena_bytes = 0;  ///< Memory of all feeds' arenas.
  std::uint32_t sessions = 0;
  std::vector<NotReady> not_ready;  ///< Empty: it is ready.
  std::vector<FeedStats> feeds;
  BuildStats build;
  std::string_view copy;                ///< The way by which batches are copied.
  std::uint64_t log_lines_dropped = 0;  ///< Standard error did not take them.
  const EventLog* events = nullptr;     ///< Lives as long as the call; null: nothing happened.
  ReloadStats reload;
  HttpStats http;
  ReadaheadStats readahead;
  std::vector<DiskStats> disks;  ///< One for each journal and ledger that can be measured.
};

/// The name of a session in the log.
std::string name_of(SessionId session);
/// Batches that the client may still get before it releases one.
std::uint32_t credit_of(const SubscriberStats& subscriber);
/// Clients that were turned away: by the allow-list, for their keys, or since there are too many.
std::uint64_t clients_refused(const StatsSource& source);
/// The page /stats: one JSON object as README.md of this room describes it, UTF-8 whatever bytes
/// clients call themselves by.
std::string render_stats(const StatsSource& source);
/// The page /history, which README.md describes, too.
std::string render_history(const StatsSource& source);

}  // namespace batchwright
