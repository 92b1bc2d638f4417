#include "daemon/delivery/feed/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace batchwright {
namespace {

/// What these data take, and their first epoch.
Result<FittingData> examine_data(std::shared_ptr<const Snapshot> snapshot,
                                 const FeedSettings& settings, Catalog& catalog) {
  FittingData data{settings, {}, {}, {}};
  if (auto opened = open_recipe(*snapshot, data.settings, catalog); !opened) return opened.error();
  if (auto read = read_order(*snapshot, data.settings.plan); !read) return read.error();
  const auto needs = feed_needs(*snapshot, data.settings);
  if (!needs) return needs.error();
  data.needs = *needs;
  auto first = plan_snapshot(std::move(snapshot), data.settings, Epoch{0});
  if (!first) return first.error();
  data.first = std::move(*first);
  return data;
}

/// Looks for the last commit that can be served. Sequences are only appended, so a commit that can
/// be has none behind it that cannot: the search doubles its steps back, then halves them.
class EarlierCommits {
 public:
  EarlierCommits(Dataset& dataset, const FeedSettings& settings, Catalog& catalog,
                 std::uint64_t left, const std::stop_token& stop)
      : dataset_(dataset), settings_(settings), catalog_(catalog), left_(left), stop_(stop) {}

  /// Empty: there is none.
  std::optional<FittingData> find() {
    const auto earlier = dataset_.earlier_commits();
    if (!earlier) return std::nullopt;
    behind_.assign(earlier->size(), 0);
    for (std::size_t shard = 0; shard < behind_.size(); ++shard) {
      if (!go_back(shard, (*earlier)[shard])) continue;
      // What was appended to the shards before it may do no harm.
      for (std::size_t other = 0; other < shard; ++other) come_near(other, 0);
      return std::move(found_);
    }
    return std::nullopt;
  }

 private:
  /// Leaves the shard at the last of its commits with which the data fit, or else at its first.
  bool go_back(std::size_t shard, std::size_t most) {
    std::size_t bad = 0;
    for (std::size_t step = 1; bad < most; step *= 2) {
      behind_[shard] = std::min(bad + step, most);
      if (fits()) {
        come_near(shard, bad + 1);
        return true;
      }
      bad = behind_[shard];
    }
    return false;
  }

  /// From a commit that is good to the nearest of those from `nearest` on that is, too.
  void come_near(std::size_t shard, std::size_t nearest) {
    std::size_t good = behind_[shard];
    while (nearest < good) {
      behind_[shard] = nearest + (good - nearest) / 2;
      if (fits()) {
        good = behind_[shard];
      } else {
        nearest = behind_[shard] + 1;
      }
    }
    behind_[shard] = good;
  }

  bool fits() {
    if (stop_.stop_requested()) return false;
    auto snapshot = dataset_.snapshot_behind(behind_);
    if (!snapshot) return false;
    auto data = examine_data(std::move(*snapshot), settings_, catalog_);
    if (!data || !choose_slots(data->settings, left_, data->needs)) return false;
    found_ = std::move(*data);
    return true;
  }

  Dataset& dataset_;
  const FeedSettings& settings_;
  Catalog& catalog_;
  const std::uint64_t left_;
  const std::stop_token& stop_;
  std::vector<std::size_t> behind_;
  std::optional<FittingData> found_;  ///< Of the last look that found data which fit.
};

Result<std::shared_ptr<const Snapshot>> choose(const Growth& growth) {
  if (growth.content && *growth.content == growth.known->content()) return growth.known;
  if (growth.content) {
    auto then = growth.dataset->snapshot_at(*growth.content);
    if (then || then.error().code != ErrorCode::not_found) return then;
    return Error{ErrorCode::fingerprint_mismatch,
                 fmt::format("data changed: {}", then.error().message)};
  }
  auto newest = growth.dataset->snapshot();
  if (newest && (*newest)->content() == growth.known->content()) return growth.known;
  return newest;
}

/// An arena whose slots hold every batch of these data; none where the current one suffices.
Result<void> add_arena(GrownEpoch& grown, const Snapshot& snapshot, const Growth& growth,
                       const FeedSettings& settings) {
  const auto bytes = feed_slot_bytes(snapshot, settings);
  if (!bytes) return bytes.error();
  if (*bytes <= growth.slot_bytes) return {};
  auto made = make_larger_arena(settings, *bytes, growth.memory, growth.arena_may_grow);
  if (!made) return made.error();
  grown.larger = std::move(*made);
  return {};
}

/// What sound takes that is longer than any before.
Result<void> add_making(GrownEpoch& grown, const Snapshot& snapshot, const Growth& growth,
                        const FeedSettings& settings) {
  const std::uint64_t needed = making_bytes(snapshot, settings);
  if (needed <= growth.making_bytes) return {};
  grown.making = claim_memory(growth.memory, needed - growth.making_bytes, settings.name);
  if (grown.making) return {};
  return Error{ErrorCode::does_not_fit,
               fmt::format("making the rows of its longest sound needs {}, {} more than there is, "
                           "the memory ceiling leaves {}",
                           in_mib(needed), in_mib(needed - growth.making_bytes),
                           in_mib(growth.memory->left()))};
}

using Chosen = Result<std::shared_ptr<const Snapshot>>;

/// The epoch that is wanted, with the arena that it needs.
Result<GrownEpoch> plan_asked(const Growth& growth, const Chosen& snapshot,
                              const FeedSettings& settings, Epoch epoch) {
  if (!snapshot) return snapshot.error();
  GrownEpoch grown;
  if (*snapshot != growth.known) {
    if (auto added = add_making(grown, **snapshot, growth, settings); !added) return added.error();
    if (auto added = add_arena(grown, **snapshot, growth, settings); !added) return added.error();
  }
  auto planned = plan_snapshot(*snapshot, settings, epoch);
  if (!planned) return planned.error();
  grown.epoch = std::move(*planned);
  return grown;
}

/// Where nothing is decided yet the data that are known are as good as newer ones that cannot be
/// had now.
Result<GrownEpoch> grow(const Growth& growth, const Chosen& chosen, const FeedSettings& settings,
                        Epoch epoch) {
  auto asked = plan_asked(growth, chosen, settings, epoch);
  if (asked || growth.content) return asked;
  auto planned = plan_snapshot(growth.known, settings, epoch);
  if (!planned) return planned.error();
  GrownEpoch grown;
  grown.epoch = std::move(*planned);
  grown.why_not_newer = asked.error().message;
  return grown;
}

}  // namespace

Result<LargerArena> make_larger_arena(const FeedSettings& settings, std::size_t slot_bytes,
                                      const std::shared_ptr<MemoryBudget>& memory,
                                      bool has_number) {
  if (!has_number) {
    return Error{ErrorCode::does_not_fit,
                 "its sequences need a larger arena, and this feed has had all numbers that arenas "
                 "can have; restart the daemon"};
  }
  const std::uint64_t needed = whole_pages(slot_bytes) * settings.slots;
  auto claimed = claim_memory(memory, needed, settings.name);
  if (!claimed) {
    return Error{
        ErrorCode::does_not_fit,
        fmt::format("its sequences need an arena of {} beside the one there is, the memory "
                    "ceiling leaves {}",
                    in_mib(needed), in_mib(memory->left()))};
  }
  auto arena = Arena::create(settings.slots, slot_bytes, settings.huge_pages);
  if (!arena) return arena.error();
  return LargerArena{std::move(*arena), std::move(claimed)};
}

Result<FittingData> find_fitting_data(Dataset& dataset, const FeedSettings& settings,
                                      Catalog& catalog, const MemoryLeft& left,
                                      const std::stop_token& stop) {
  if (auto can = check_can_follow(dataset, settings); !can) return can.error();
  auto snapshot = dataset.snapshot();
  if (!snapshot) return snapshot.error();
  auto newest = examine_data(std::move(*snapshot), settings, catalog);
  const std::uint64_t bytes = left(newest ? newest->needs.bytes() : 0);
  if (newest) {
    const auto fits = choose_slots(newest->settings, bytes, newest->needs);
    if (fits) return newest;
    newest = fits.error();
  }
  // Where the disk is in trouble, earlier commits are, too.
  if (!settings.follow || is_transient(newest.error().code)) return newest;
  auto found = EarlierCommits(dataset, settings, catalog, bytes, stop).find();
  if (!found) return newest;
  found->why_not_newer = newest.error().message;
  return *std::move(found);
}

Result<std::shared_ptr<const Snapshot>> choose_data(const Growth& growth) {
  return as_result(ErrorCode::internal, "planning: ", [&] { return choose(growth); });
}

Result<GrownEpoch> plan_growing(const Growth& growth,
                                const Result<std::shared_ptr<const Snapshot>>& chosen,
                                const FeedSettings& settings, Epoch epoch) {
  return as_result(ErrorCode::internal,
                   "planning: ", [&] { return grow(growth, chosen, settings, epoch); });
}

}  // namespace batchwright
