#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/journal.h"
#include "daemon/delivery/ledger.h"
#include "daemon/delivery/planner.h"
#include "daemon/delivery/work_queue.h"
#include "daemon/planning/planning.h"
#include "formats/formats.h"

namespace batchwright {

/// How one feed is served; plain values from the configuration.
struct FeedSettings {
  std::string name;
  PlanSettings plan;
  Layout layout = Layout::batch_major;
  PaddingValues padding;
  OnCorrupt on_corrupt = OnCorrupt::stop;
  /// With `skip`: the share of an epoch's sequences above which the feed fails.
  double max_corrupt_share = 0.01;
  std::uint32_t slots = 16;
  std::uint32_t max_window = 8;   ///< Most batches a client may hold; half the slots at most.
  bool poison = false;            ///< Debug: released slots are overwritten with 0xDB.
  std::uint32_t max_lead = 0;     ///< Global steps from the slowest to the fastest; 0: any.
  std::filesystem::path journal;  ///< Of queue mode; empty: there is none.
  std::filesystem::path ledger;   ///< Who got what; empty: not written.
  bool follow = false;            ///< Each epoch takes up what was appended.
  /// How long those ahead wait for who is about to fall out of the slots. More than a scheduler's
  /// turn, less than a step that anybody would miss.
  std::chrono::milliseconds patience{50};
  std::chrono::milliseconds queue_grace{10'000};  ///< For a queue's client to come back.
};

/// What a feed needs before the loop runs: data, first plan, memory.
struct FeedResources {
  std::shared_ptr<const Snapshot> snapshot;
  PlannedEpoch first_epoch;
  std::unique_ptr<Arena> arena;
  WorkQueue queue;
  std::unique_ptr<QueueJournal> journal;  ///< Null where the feed has no queue.
  std::unique_ptr<Ledger> ledger;         ///< Null where none is kept.
  std::shared_ptr<Dataset> dataset;       ///< Asked for what was appended.
};

/// Bytes of a slot for any batch of any epoch of these data. Errors: those of plan_bound() and
/// slot_bytes_for().
Result<std::size_t> feed_slot_bytes(const Snapshot& snapshot, const FeedSettings& settings);

/// The same, if an arena of such slots fits under what the ceiling leaves. Errors: also
/// does_not_fit, with the bytes needed and left; store_unavailable (no sequences).
Result<std::size_t> feed_needs(const Snapshot& snapshot, const FeedSettings& settings,
                               std::uint64_t memory_bytes);

/// What an arena will make of a slot's bytes.
std::uint64_t whole_pages(std::uint64_t bytes);

/// Blocks on the disk: reads the dataset's index, plans the first epoch, and
/// reserves the arena. `memory_bytes` is what the ceiling leaves. `stop` ends it early.
/// Errors: store_unavailable (also: it is to follow a dataset without a lock), infeasible,
/// bad_configuration (padding), does_not_fit (names the bytes needed and left), disconnected (it
/// was to stop).
Result<FeedResources> prepare_feed(std::shared_ptr<Dataset> dataset, const FeedSettings& settings,
                                   std::uint64_t memory_bytes, const std::stop_token& stop = {});

}  // namespace batchwright
