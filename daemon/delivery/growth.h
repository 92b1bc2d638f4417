#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/delivery/feed_resources.h"
#include "daemon/delivery/memory_budget.h"
#include "daemon/delivery/planner.h"

namespace batchwright {

/// From what the next epoch of a feed with `follow` is to be planned.
struct Growth {
  std::shared_ptr<Dataset> dataset;
  std::shared_ptr<const Snapshot> known;  ///< What the feed served last.
  std::optional<std::uint64_t> content;  ///< The data of this epoch, where that is decided already.
  std::size_t slot_bytes = 0;            ///< Of the arena there is.
  std::shared_ptr<MemoryBudget> memory;
};

/// An epoch, and what it asks for.
struct GrownEpoch {
  PlannedEpoch epoch;
  MemoryClaim memory;            ///< What the arena takes, until a generation has it.
  std::unique_ptr<Arena> arena;  ///< Where the slots there are have become too small.
  std::string why_not_newer;     ///< Why the epoch does without what was appended; else empty.
};

/// Plans an epoch from the newest commit, or from the data that are decided. Where the newest
/// cannot be had (no memory for a larger arena, reader slots that are taken, a folder that is
/// away), from what is known: a writer does not end the training. Blocks on the disk. Errors:
/// fingerprint_mismatch (the dataset has nothing any more of the data that are decided), those of
/// plan_snapshot() and of Dataset::snapshot().
Result<GrownEpoch> plan_growing(const Growth& growth, const FeedSettings& settings, Epoch epoch);

}  // namespace batchwright
