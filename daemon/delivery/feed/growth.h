#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "daemon/delivery/feed/feed_resources.h"
#include "daemon/delivery/feed/plans/planner.h"

namespace batchwright {

/// Data that a feed can serve, and what serving them takes.
struct FittingData {
  FeedSettings settings;  ///< With its recipe open, and its order file read.
  PlannedEpoch first;     ///< The first epoch, and with it the snapshot.
  FeedNeeds needs;
  std::string why_not_newer;  ///< Why they are not the newest; empty: they are.
};

/// What the ceiling leaves, asked with what is needed (0: it is not known). It may wait for other
/// feeds that are to claim theirs first.
using MemoryLeft = std::function<std::uint64_t(std::uint64_t needed)>;

/// The newest data of a dataset that the feed can serve: those of the newest commit, or, where a
/// feed with `follow` cannot serve these, of the last one before it that it can. So a feed that
/// leaves out what was appended while it runs is still served after a restart. `left` is called
/// once, when it is known what the newest commit takes. Blocks on the disk. Errors: why the newest
/// commit cannot be served; disconnected (it was to stop).
Result<FittingData> find_fitting_data(Dataset& dataset, const FeedSettings& settings,
                                      Catalog& catalog, const MemoryLeft& left,
                                      const std::stop_token& stop = {});

/// The basis for planning the next epoch of a feed with `follow`.
struct Growth {
  std::shared_ptr<Dataset> dataset;
  std::shared_ptr<const Snapshot> known;  ///< The snapshot that the feed served last.
  std::optional<std::uint64_t> content;  ///< The data of this epoch, where that is decided already.
  std::size_t slot_bytes = 0;            ///< Slot size of the current arena.
  std::shared_ptr<MemoryBudget> memory;
  bool arena_may_grow = true;      ///< A number is left for another arena.
  std::uint64_t making_bytes = 0;  ///< Claimed for the longest sound there was.
};

/// An arena that takes the place of one whose slots are too small.
struct LargerArena {
  std::unique_ptr<Arena> arena;
  MemoryClaim memory;  ///< Its memory, until a generation takes it over.
};
/// As many slots as the feed has, of so many bytes. `has_number`: one is left for it. Errors:
/// does_not_fit, those of Arena::create().
Result<LargerArena> make_larger_arena(const FeedSettings& settings, std::size_t slot_bytes,
                                      const std::shared_ptr<MemoryBudget>& memory, bool has_number);

/// A planned epoch, and the memory that it needs.
struct GrownEpoch {
  PlannedEpoch epoch;
  LargerArena larger;            ///< If the current slots have become too small.
  MemoryClaim making = nullptr;  ///< For sound that is longer than any before.
  std::string why_not_newer;     ///< Why the epoch does without appended data; otherwise empty.
};

/// The newest commit, or the data that are decided. Blocks on the disk. Errors:
/// fingerprint_mismatch (the dataset no longer has the data that are decided), those of
/// Dataset::snapshot().
Result<std::shared_ptr<const Snapshot>> choose_data(const Growth& growth);

/// Plans an epoch from the data that were chosen. Where the newest cannot be had (no memory for a
/// larger arena, reader slots that are taken, a folder that is away), from what is known: a writer
/// does not end the training. Errors: that of `chosen`, those of plan_snapshot().
Result<GrownEpoch> plan_growing(const Growth& growth,
                                const Result<std::shared_ptr<const Snapshot>>& chosen,
                                const FeedSettings& settings, Epoch epoch);

}  // namespace batchwright
