#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/stats/counters.h"
#include "daemon/stats/process_stats.h"
#include "formats/formats.h"

namespace batchwright {

// What /stats shows, as plain values: whoever knows them fills them in, once a request.

struct SubscriberStats {
  SessionId session;
  std::uint32_t subscription = 0;
  std::string client;  ///< As the client calls itself.
  std::uint32_t pid = 0;
  wire::Mode mode = wire::Mode::replica;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  Epoch epoch;  ///< Position of the next delivery.
  Step step;
  std::uint32_t window = 0;  ///< As granted, batches.
  std::uint32_t held = 0;    ///< Batches delivered and not released.
};

/// Each slot is in one of these; together they are all slots of the arena.
struct SlotStats {
  std::uint32_t free = 0;
  std::uint32_t filling = 0;
  std::uint32_t ready = 0;  ///< Holds a batch that nobody holds.
  std::uint32_t held = 0;   ///< Holds a batch that at least one subscriber holds.
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

enum class FeedState : std::uint8_t { starting, serving, failed };

struct FeedStats {
  std::string name;
  std::vector<std::string> dataset;  ///< Paths of the shards.
  FeedState state = FeedState::starting;
  std::string reason;                      ///< Of a failed feed.
  const FeedCounters* counters = nullptr;  ///< Lives as long as the call; null: all are 0.
  std::uint64_t sequences = 0;             ///< Of the dataset.
  std::string fingerprint;
  std::uint32_t world = 1;
  SlotStats slots;
  std::uint64_t slot_bytes = 0;
  std::uint64_t arena_bytes = 0;
  std::string pinned;            ///< "none", "locked" or "cuda".
  std::vector<PlanStats> plans;  ///< Of the epochs that are served now.
  std::vector<SubscriberStats> subscribers;
};

struct StatsSource {
  std::string version;
  std::chrono::duration<double> uptime{0};
  ProcessStats process;
  std::uint64_t memory_ceiling_bytes = 0;
  std::uint64_t arena_bytes = 0;  ///< Of all feeds.
  std::uint32_t sessions = 0;
  std::vector<FeedStats> feeds;
};

/// The page /stats: one JSON object as README.md of this room describes it, UTF-8 whatever bytes
/// clients call themselves by.
std::string render_stats(const StatsSource& source);

}  // namespace batchwright
