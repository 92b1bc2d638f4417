#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/feed_settings.h"
#include "daemon/delivery/feed/live/live_source.h"
#include "daemon/delivery/feed/plans/planner.h"
#include "daemon/delivery/feed/queue/work_queue.h"
#include "daemon/delivery/feed/record_writer.h"
#include "formats/formats.h"

namespace batchwright {

/// What a feed reads, and what its clients were told of it.
struct FeedData {
  std::shared_ptr<const Snapshot> snapshot;  ///< The newest that an epoch was planned of.
  PlannedEpoch first_epoch;                  ///< The epoch that the feed began with.
  std::shared_ptr<Dataset> dataset;          ///< Asked for what was appended.
  /// Brings in what look-ups go through; null where no thread could be had. Its end waits for the
  /// disk, so it is not left to the loop.
  std::shared_ptr<const std::jthread> tree_reader = nullptr;
  DatasetStanding standing = {};  ///< What was found when the files were looked at last.
  bool looking = false;           ///< They are being looked at.
  /// Why sequences that were appended are left out; empty: none are.
  std::string why_not_newer = {};
  /// Since when it is asked what was appended; empty: it is not.
  std::optional<WaitingTimes::Time> asked_since = {};
  /// What making rows takes beside the arena, as long as there is the feed.
  std::vector<MemoryClaim> making = {};  ///< More than one where the dataset has grown.
  MemoryClaim row_cache = nullptr;
  std::string few_slots = {};  ///< What is to be said of their number; mostly nothing.
  /// Of a live feed, which has neither snapshot nor dataset; null for others.
  std::shared_ptr<LiveSource> live = nullptr;

  std::uint64_t claimed_for_sound() const {
    std::uint64_t bytes = 0;
    for (const MemoryClaim& claim : making) bytes += bytes_of(claim);
    return bytes;
  }
};

/// What a feed needs before the loop runs: data with their first plan, memory, files.
struct FeedResources {
  FeedData data;
  std::unique_ptr<Arena> arena;
  WorkQueue queue;
  std::optional<JournalState> journal;  ///< Empty where the feed has no queue.
  RecordFiles files;
  std::unique_ptr<SpooledFeed> spooled;  ///< What files.spool had; null where there is none.
};

/// Opens settings.features for data, and has settings.recipe be it; nothing where there is none.
/// Blocks on the disk. Errors: those of Recipe::open(), and for a dataset of Dataset::snapshot().
Result<void> open_recipe(const Snapshot& snapshot, FeedSettings& settings, Catalog& catalog);
Result<void> open_recipe(Dataset& dataset, FeedSettings& settings, Catalog& catalog);

/// Bytes of a slot for any batch of any epoch of these data. Errors: those of plan_bound() and
/// slot_bytes_for().
Result<std::size_t> feed_slot_bytes(const Snapshot& snapshot, const FeedSettings& settings);

/// Memory that making the rows takes beside the arena: of each assembly thread for the longest
/// sound, and what is kept of noise and rooms.
std::uint64_t making_bytes(const Snapshot& snapshot, const FeedSettings& settings);

/// Whether claim_row_cache() claims anything.
bool has_row_cache(const FeedSettings& settings);

/// Has `data` claim settings.row_cache_bytes, or less where all rows take less, or the ceiling
/// leaves less: what finds no room there is made again, and nothing else.
void claim_row_cache(const FeedSettings& settings, const std::shared_ptr<MemoryBudget>& memory,
                     FeedData& data);

/// The slots that a feed is to have, each of `slot_bytes`: those that its settings name; or else
/// suited_slots(), or as many as `memory_bytes` hold, if these are more than `world`.
std::uint32_t feed_slots(const FeedSettings& settings, std::size_t slot_bytes,
                         std::uint64_t memory_bytes);
/// What is to be said of a feed that was to choose and has so many; empty where these suit it.
std::string about_slots(const FeedSettings& settings, std::uint32_t slots);

/// What a feed takes of the memory ceiling.
struct FeedNeeds {
  std::uint32_t slots = 0;         ///< As many as it cannot do without, until choose_slots().
  std::size_t slot_bytes = 0;      ///< Of each, in whole pages.
  std::uint64_t making_bytes = 0;  ///< Beside the arena.
  std::uint64_t arena_bytes() const { return std::uint64_t{slot_bytes} * slots; }
  std::uint64_t bytes() const { return arena_bytes() + making_bytes; }
};

/// What a feed needs at least. Errors: those of feed_slot_bytes(); store_unavailable (no
/// sequences); bad_configuration (padding, casts).
Result<FeedNeeds> feed_needs(const Snapshot& snapshot, const FeedSettings& settings);

/// Has a feed feed_slots(), if these, and making the rows, fit under what the ceiling leaves.
/// Errors: does_not_fit, with the bytes needed and left.
Result<void> choose_slots(const FeedSettings& settings, std::uint64_t memory_bytes,
                          FeedNeeds& needs);

/// Errors: store_unavailable, where it is to follow a dataset without a lock: a snapshot without
/// one ends with the second commit after it.
Result<void> check_can_follow(const Dataset& dataset, const FeedSettings& settings);

/// Reserves the arena and opens the files for data whose first epoch is planned. Blocks on the
/// disk. `stop` ends it early. Errors: does_not_fit, disconnected (it was to stop), those of
/// open_journal() and open_ledger().
Result<FeedResources> make_resources(std::shared_ptr<Dataset> dataset, PlannedEpoch first,
                                     const FeedSettings& settings, const FeedNeeds& needs,
                                     const std::stop_token& stop = {});

/// What a live feed takes: slots for its largest batch as far as that is known, and its pool. Where
/// a batch is larger, slots grow. Errors: bad_configuration (padding, casts), does_not_fit (a batch
/// beyond the format).
Result<FeedNeeds> live_feed_needs(const FeedSettings& settings);
/// Reserves the arena, opens the files, and begins a new incarnation. Errors: as make_resources(),
/// and those of StepRecord::open().
Result<FeedResources> make_live_resources(const FeedSettings& settings, const FeedNeeds& needs,
                                          const std::stop_token& stop = {});
/// Both, under what the ceiling leaves. Errors: those of both, and of choose_slots().
Result<FeedResources> prepare_live_feed(const FeedSettings& settings, std::uint64_t memory_bytes,
                                        const std::stop_token& stop = {});

/// Blocks on the disk: reads the dataset's index, plans the first epoch, and reserves the arena.
/// `memory_bytes` is what the ceiling leaves. `stop` ends it early. Errors: those of all above, and
/// of plan_snapshot().
Result<FeedResources> prepare_feed(std::shared_ptr<Dataset> dataset, const FeedSettings& settings,
                                   std::uint64_t memory_bytes, const std::stop_token& stop = {});

/// A feed that is configured and not served: it is being opened, or cannot be served for now.
struct UnavailableFeed {
  std::string name;
  std::vector<std::filesystem::path> dataset;
  Error why;  ///< The reason, without the feed's name.
  /// The arena's number of the feed before it, as clients know it; empty: there was none.
  std::optional<ArenaNumber> arena = {};
  /// It is being opened for the first time: it is not known yet whether it can be served.
  bool opening = false;

  /// The error that its clients get.
  Error told() const {
    if (opening) return {why.code, "feed " + name + " is being opened"};
    return {why.code, "feed " + name + " is not served: " + why.message};
  }
};

/// A feed of a daemon that starts.
inline UnavailableFeed being_opened(const std::string& name,
                                    const std::vector<std::filesystem::path>& dataset) {
  return {name, dataset, {ErrorCode::busy, "it is being opened"}, {}, true};
}

/// Whether a feed that failed so may be served again without a change of the configuration: data
/// that come back, a disk that has room again, memory that others return. Its clients wait.
constexpr bool is_transient(ErrorCode code) {
  switch (code) {
    case ErrorCode::store_unavailable:
    case ErrorCode::io_error:
    case ErrorCode::busy:
    case ErrorCode::timed_out:
    case ErrorCode::disconnected: return true;
    default: return false;
  }
}

}  // namespace batchwright
