#include "daemon/planning/unroll.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <string>

namespace batchwright {
namespace {

/// Every lane by when it is free, as words of (step, lane). A tournament: each inner node holds
/// the lesser of its two children, so that the lane that is free first is at the root.
class Dealer {
 public:
  explicit Dealer(std::size_t lanes) : leaves_(std::bit_ceil(lanes)), nodes_(2 * leaves_, kNever) {
    for (std::size_t lane = 0; lane < lanes; ++lane) nodes_[leaves_ + lane] = lane;
    for (std::size_t i = leaves_; i-- > 1;) nodes_[i] = std::min(nodes_[2 * i], nodes_[2 * i + 1]);
  }

  std::uint64_t first_free() const { return nodes_[1] >> kLaneBits; }
  std::size_t first_lane() const { return nodes_[1] & ((std::uint64_t{1} << kLaneBits) - 1); }
  std::uint64_t last_free() const { return last_; }

  /// The first lane is busy for so many more steps.
  void occupy(std::uint64_t steps) {
    std::uint64_t word = nodes_[1] + (steps << kLaneBits);
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

std::uint64_t steps_of(std::uint32_t length, std::uint32_t unroll) {
  return (std::uint64_t{length} + unroll - 1) / unroll;
}

}  // namespace

Result<Unrolled> Unrolled::deal(Draft& draft, const PlanSettings& settings) {
  const std::uint64_t all_lanes = std::uint64_t{settings.lanes} * settings.world;
  if (all_lanes > kMostLanes) {
    return Error{ErrorCode::infeasible, "lanes times world = " + std::to_string(all_lanes) +
                                            ", allowed: up to " + std::to_string(kMostLanes)};
  }
  Unrolled plan;
  plan.lanes_ = settings.lanes;
  plan.unroll_ = settings.unroll;
  plan.lane_ends_.resize(all_lanes + 1);
  // Dealt twice: to count each lane's items, and to put them in their places.
  const auto words = draft.order.words();
  Dealer counting(all_lanes);
  for (const std::uint64_t word : words) {
    ++plan.lane_ends_[counting.first_lane() + 1];
    counting.occupy(steps_of(key_of(word), plan.unroll_));
  }
  const bool keeps = settings.last == LastBatch::keep;
  plan.steps_ = keeps ? counting.last_free() : counting.first_free();
  if (plan.steps_ == 0) {
    return Error{ErrorCode::infeasible, std::to_string(words.size()) + " sequences do not fill " +
                                            std::to_string(all_lanes) + " lanes, and last = drop"};
  }
  if (counting.last_free() > std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorCode::infeasible, "more than 4294967295 steps: use a larger unroll or lanes"};
  }
  for (std::size_t lane = 1; lane <= all_lanes; ++lane) {
    plan.lane_ends_[lane] += plan.lane_ends_[lane - 1];
  }
  plan.place(words);
  draft.order = WordBuffer();
  return plan;
}

void Unrolled::place(std::span<const std::uint64_t> words) {
  taken_.resize(words.size());
  Dealer dealer(lane_ends_.size() - 1);
  for (const std::uint64_t word : words) {
    const std::uint32_t at = lane_ends_[dealer.first_lane()]++;  // moves on to the lane's end
    taken_[at] = {static_cast<std::uint32_t>(dealer.first_free()), item_of(word)};
    dealer.occupy(steps_of(key_of(word), unroll_));
  }
}

Row Unrolled::row(const ItemTable& table, std::uint64_t step, std::uint64_t lane) const {
  const auto begin = taken_.begin() + (lane == 0 ? 0 : lane_ends_[lane - 1]);
  const auto end = taken_.begin() + lane_ends_[lane];
  const auto after = std::partition_point(
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
  return row;
}

}  // namespace batchwright
