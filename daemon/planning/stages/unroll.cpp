#include "daemon/planning/stages/unroll.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <string>

#include "daemon/planning/stages/uses.h"

namespace batchwright {
namespace {

/// Every lane by when it is free, as words of (step, lane). A tournament: each inner node holds
/// the lesser of its two children, so that the lane that is free first is at the root. A
/// std::priority_queue would take a pop and a push for each item; this goes up the tree once.
class Dealer {
 public:
  // Lanes beside the last are never free, so that the tree has 2^n leaves. Words begin as lanes:
  // all are free at step 0.
  explicit Dealer(std::size_t lanes) : leaves_(std::bit_ceil(lanes)), nodes_(2 * leaves_, kNever) {
    for (std::size_t lane = 0; lane < lanes; ++lane) nodes_[leaves_ + lane] = lane;
    for (std::size_t i = leaves_; i-- > 1;) nodes_[i] = std::min(nodes_[2 * i], nodes_[2 * i + 1]);
  }

  std::uint64_t first_free() const { return nodes_[1] >> kLaneBits; }
  std::size_t first_lane() const { return nodes_[1] & ((std::uint64_t{1} << kLaneBits) - 1); }
  std::uint64_t last_free() const { return last_; }

  /// The first lane is busy for so many more steps.
  void occupy(std::uint32_t steps) {
    std::uint64_t word = nodes_[1] + (std::uint64_t{steps} << kLaneBits);
    last_ = std::max(last_, word >> kLaneBits);
    std::size_t i = leaves_ + first_lane();
    for (nodes_[i] = word; i > 1; i /= 2) {
      word = std::min(word, nodes_[i ^ 1]);
      nodes_[i / 2] = word;
    }
  }

 private:
  static constexpr int kLaneBits = 24;
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  std::size_t leaves_;
  std::vector<std::uint64_t> nodes_;
  std::uint64_t last_ = 0;
};

/// Steps of a sequence, at least one: none is empty. 32-bit division is much faster than 64-bit.
std::uint32_t steps_of(std::uint32_t length, std::uint32_t unroll) {
  return (length - 1) / unroll + 1;
}

/// A lane, and the steps that an item takes there, in the 32 bits that held the item's length.
/// Where they do not fit, which takes many lanes and long sequences, the length is looked up
/// instead.
class LaneKey {
 public:
  LaneKey(std::uint64_t lanes, std::uint32_t longest, std::uint32_t unroll)
      : lane_bits_(static_cast<int>(std::bit_width(lanes - 1))),
        fits_(lane_bits_ + static_cast<int>(std::bit_width(steps_of(longest, unroll))) <= 32),
        unroll_(unroll) {}

  std::uint32_t key(std::size_t lane, std::uint32_t steps) const {
    return static_cast<std::uint32_t>(lane | (fits_ ? std::uint64_t{steps} << lane_bits_ : 0));
  }
  std::uint32_t lane(std::uint32_t key) const {
    return key & static_cast<std::uint32_t>((std::uint64_t{1} << lane_bits_) - 1);
  }
  std::uint32_t steps(std::uint64_t word, const ItemTable& table) const {
    if (!fits_) return steps_of(table.length(item_of(word)), unroll_);
    return static_cast<std::uint32_t>(std::uint64_t{key_of(word)} >> lane_bits_);
  }

 private:
  int lane_bits_;
  bool fits_;
  std::uint32_t unroll_;
};

}  // namespace

Result<Unrolled> Unrolled::deal(PlanBuilder& builder, const PlanSettings& settings) {
  const std::uint64_t all_lanes = std::uint64_t{settings.lanes} * settings.world;
  if (all_lanes > kMostLanes) {
    return Error{ErrorCode::infeasible,
                 fmt::format("lanes times world = {}, allowed: up to {}", all_lanes, kMostLanes)};
  }
  Unrolled plan;
  plan.lanes_ = settings.lanes;
  plan.unroll_ = settings.unroll;
  plan.lane_ends_.resize(all_lanes + 1);
  // Each word's length gives way to its lane and steps, while each lane's items are counted.
  const auto words = builder.order.words();
  const LaneKey keys(all_lanes, builder.longest, plan.unroll_);
  Dealer dealer(all_lanes);
  for (std::uint64_t& word : words) {
    const std::size_t lane = dealer.first_lane();
    const std::uint32_t steps = steps_of(key_of(word), plan.unroll_);
    ++plan.lane_ends_[lane + 1];
    dealer.occupy(steps);
    word = key_word(keys.key(lane, steps), item_of(word));
  }
  const bool keeps = settings.last == LastBatch::keep;
  // `drop` ends with the first lane that runs out, so that no row is empty.
  plan.steps_ = keeps ? dealer.last_free() : dealer.first_free();
  if (plan.steps_ == 0) {
    return Error{
        ErrorCode::infeasible,
        fmt::format("{} sequences do not fill {} lanes, and last = drop", words.size(), all_lanes)};
  }
  // Taken keeps the step in 32 bits.
  if (dealer.last_free() > std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorCode::infeasible, "more than 4294967295 steps: use a larger unroll or lanes"};
  }
  for (std::size_t lane = 1; lane <= all_lanes; ++lane) {
    plan.lane_ends_[lane] += plan.lane_ends_[lane - 1];
  }
  // A counting sort by lane: the counts tell where each lane's list begins.
  plan.taken_ = std::make_unique_for_overwrite<Taken[]>(words.size());
  std::vector<std::uint32_t> free_at(all_lanes);
  const SameParts same(builder.table);
  std::vector<std::uint32_t> seen(builder.repeats ? same.count() : 0);
  plan.uses_.resize(builder.repeats ? words.size() : 0);
  for (const std::uint64_t word : words) {
    const std::uint32_t lane = keys.lane(key_of(word));
    const std::uint32_t at = plan.lane_ends_[lane]++;  // moves on to the lane's end
    plan.taken_[at] = {free_at[lane], item_of(word)};
    // Words come by rising step and lane, as their rows do: so each part of a sequence has the
    // same use.
    if (builder.repeats) plan.uses_[at] = seen[same.of(item_of(word))]++;
    free_at[lane] += keys.steps(word, builder.table);
  }
  // 8 bytes a row: the lanes' lists have taken their place.
  builder.order = WordBuffer();
  return plan;
}

Row Unrolled::row(const ItemTable& table, std::uint64_t step, std::uint64_t lane) const {
  const Taken* const begin = taken_.get() + (lane == 0 ? 0 : lane_ends_[lane - 1]);
  const Taken* const end = taken_.get() + lane_ends_[lane];
  const Taken* const after = std::partition_point(
      begin, end, [step](const Taken& taken) { return taken.from_step <= step; });
  if (after == begin) return {};  // the lane never had any
  const Taken taken = *std::prev(after);
  Row row = table.row(taken.item);
  const std::uint64_t start = (step - taken.from_step) * unroll_;
  if (start >= row.length) return {};  // the lane has run out
  const std::uint64_t frames = std::min<std::uint64_t>(unroll_, row.length - start);
  row.flags = static_cast<std::uint8_t>((start == 0 ? kRowReset : 0) |
                                        (start + frames == row.length ? kRowLast : 0));
  row.start = static_cast<std::uint32_t>(start);
  row.length = static_cast<std::uint32_t>(frames);
  if (!uses_.empty()) row.use = uses_[static_cast<std::size_t>(std::prev(after) - taken_.get())];
  return row;
}

}  // namespace batchwright
