#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/live/live.h"
#include "daemon/planning/planning.h"

namespace batchwright {

/// What a feed can take up while it serves: nothing here decides the bytes of a batch or the size
/// of the arena.
struct FeedAdjustments {
  OnCorrupt on_corrupt = OnCorrupt::stop;  ///< When a record fails verification.
  /// With `skip`: the share of an epoch's sequences above which the feed fails. One sequence may
  /// always be corrupt, unless it is 0.
  double max_corrupt_share = 0.01;
  std::uint32_t max_window = 8;  ///< Most batches a client may hold; half the slots at most.
  bool poison = false;           ///< Debug: released slots are overwritten with 0xDB.
  std::uint32_t max_lead = 0;    ///< Global steps from the slowest to the fastest; 0: any.
  std::chrono::milliseconds queue_grace{10'000};  ///< For a queue's client to come back.

  /// After so many workers that could not do it a queue's batch is set aside; 0: never.
  std::uint32_t queue_attempts = 0;

  friend bool operator==(const FeedAdjustments&, const FeedAdjustments&) = default;
};

/// Which fields of a live feed come from the rows of a feed of a dataset.
struct LiveJoin {
  std::string from;  ///< That feed; empty: there are none.
  std::vector<std::string> fields;

  friend bool operator==(const LiveJoin&, const LiveJoin&) = default;
};

/// What producers push to a live feed, and what becomes of it. `plan` gives world, seed, cut and
/// quadratic_scale of its pool, and decides nothing else.
struct LiveFeedSettings {
  Schema schema;  ///< The first field is the primary one; those that are joined are the last.
  LiveJoin join;
  LiveSettings pool;
  bool allow_nan = false;  ///< Of float fields, infinities too: whether producers may push them.
  std::filesystem::path record;  ///< Dataset of what was delivered; empty: none is written.
  std::filesystem::path spool;   ///< Folder of what was accepted; empty: it ends with the daemon.
  bool spool_synced = false;     ///< What is accepted is on the disk, and survives a loss of power.

  /// So many fields are pushed: the first ones.
  std::size_t pushed() const { return schema.fields.size() - join.fields.size(); }
};

/// With so many slots each rank of a job of `world` ranks has a batch in hand and one in reserve,
/// and another job's clients find some, too.
constexpr std::uint32_t suited_slots(std::uint32_t world) {
  return std::max<std::uint32_t>(16, 2 * world + 2);
}

/// How one feed is served; plain values from the configuration.
struct FeedSettings : FeedAdjustments {
  std::string name;  ///< What trainers subscribe to.
  PlanSettings plan;
  Layout layout = Layout::batch_major;
  PaddingValues padding;    ///< Behind a row's real frames, by field; 0 where none is given.
  Casts casts;              ///< Of float32 fields; none where nothing is given.
  RecipeSettings features;  ///< What is made of stored sequences.
  /// The same, opened by open_recipe(); null where there is none.
  std::shared_ptr<const Recipe> recipe;
  /// Most bytes of made rows of which batches take parts, all epochs together.
  std::uint64_t row_cache_bytes = RowCache::kMostBytes;
  /// What is left of them, or of what the memory ceiling had; made by open_recipe().
  std::shared_ptr<MemoryBudget> row_budget;
  /// Threads that make rows, each with memory of its own.
  std::uint32_t assembly_threads = 2;
  /// 0: suited_slots(), or as many as the memory ceiling leaves; what the feed has is its arena's.
  std::uint32_t slots = 0;
  HugePages huge_pages = HugePages::automatic;  ///< For the arena.
  std::filesystem::path journal;                ///< Of queue mode; empty: there is none.
  std::filesystem::path ledger;  ///< Which sequence went to which client; empty: not written.
  bool follow = false;           ///< Each epoch takes up what was appended.
  std::optional<LiveFeedSettings> live;  ///< Empty: the feed has a dataset.
  /// How long those ahead wait for a client that is about to fall out of the slots: more than a
  /// scheduler's turn, less than a trainer's step.
  std::chrono::milliseconds patience{50};
};

/// What decides which batches a feed's trainers get and how they look, beside the data: planner,
/// plan as the configuration spells it, recipe, layout, and each field with its padding and the
/// dtype that it has in a batch. `schema` is that of the rows. One `key = value` a line, in the
/// configuration's order; what is not set has no line.
std::string terms_text(const FeedSettings& settings, const Schema& schema);

/// What fingerprint_of() would be with draws = 1 under [feed.features], as it was before there was
/// a second version. Empty where the recipe draws nothing, or has draws = 1.
std::optional<Fingerprint> fingerprint_of_first_draws(const Snapshot& snapshot,
                                                      const FeedSettings& settings);

/// The same of a live feed, whose data part is its incarnation.
Fingerprint fingerprint_of_live(const FeedSettings& settings, std::uint64_t incarnation);

/// What a feed's batches depend on. Whatever terms_text() tells belongs to it.
Fingerprint fingerprint_of(const Snapshot& snapshot, const FeedSettings& settings);

}  // namespace batchwright
