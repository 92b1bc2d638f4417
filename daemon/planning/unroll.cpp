#include "daemon/planning/unroll.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <string>

namespace batchwright {
namespace {

struct FreeLane {
  std::uint64_t from_step;
  std::uint32_t lane;
  bool operator>(const FreeLane& other) const {
    return from_step != other.from_step ? from_step > other.from_step : lane > other.lane;
  }
};

/// Every lane by when it is free, the first to be so on top.
class Dealer {
 public:
  explicit Dealer(std::uint32_t lanes) {
    for (std::uint32_t lane = 0; lane < lanes; ++lane) free_.push({0, lane});
  }

  FreeLane give(std::uint64_t steps) {
    const FreeLane taken = free_.top();
    free_.pop();
    free_.push({taken.from_step + steps, taken.lane});
    last_ = std::max(last_, taken.from_step + steps);
    return taken;
  }

  std::uint64_t first_free() const { return free_.top().from_step; }
  std::uint64_t last_free() const { return last_; }

 private:
  std::priority_queue<FreeLane, std::vector<FreeLane>, std::greater<>> free_;
  std::uint64_t last_ = 0;
};

std::uint64_t steps_of(std::uint32_t length, std::uint32_t unroll) {
  return (std::uint64_t{length} + unroll - 1) / unroll;
}

}  // namespace

Result<Unrolled> Unrolled::deal(const Draft& draft, const PlanSettings& settings) {
  const std::uint64_t all_lanes = std::uint64_t{settings.lanes} * settings.world;
  if (all_lanes > std::uint64_t{1} << 24) {
    return Error{ErrorCode::infeasible,
                 "lanes times world = " + std::to_string(all_lanes) + ", allowed: up to 16777216"};
  }
  Unrolled plan;
  plan.lanes_ = settings.lanes;
  plan.unroll_ = settings.unroll;
  plan.lane_ends_.resize(all_lanes + 1);
  // Dealt twice: to count each lane's items, and to put them in their places.
  Dealer counting(static_cast<std::uint32_t>(all_lanes));
  for (const std::uint32_t item : draft.items) {
    const auto taken = counting.give(steps_of(draft.table.length(item), plan.unroll_));
    ++plan.lane_ends_[taken.lane + 1];
  }
  plan.steps_ = settings.last == LastBatch::keep ? counting.last_free() : counting.first_free();
  if (plan.steps_ == 0) {
    return Error{ErrorCode::infeasible, std::to_string(draft.items.size()) +
                                            " sequences do not fill " + std::to_string(all_lanes) +
                                            " lanes, and last = drop"};
  }
  if (counting.last_free() > std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorCode::infeasible, "more than 4294967295 steps: use a larger unroll or lanes"};
  }
  for (std::size_t lane = 1; lane <= all_lanes; ++lane) {
    plan.lane_ends_[lane] += plan.lane_ends_[lane - 1];
  }
  plan.items_.resize(draft.items.size());
  plan.from_steps_.resize(draft.items.size());
  Dealer placing(static_cast<std::uint32_t>(all_lanes));
  for (const std::uint32_t item : draft.items) {
    const auto taken = placing.give(steps_of(draft.table.length(item), plan.unroll_));
    const std::uint32_t place = plan.lane_ends_[taken.lane]++;  // moves on to the lane's end
    plan.items_[place] = item;
    plan.from_steps_[place] = static_cast<std::uint32_t>(taken.from_step);
  }
  return plan;
}

Row Unrolled::row(const ItemTable& table, std::uint64_t step, std::uint64_t lane) const {
  const auto begin = from_steps_.begin() + (lane == 0 ? 0 : lane_ends_[lane - 1]);
  const auto end = from_steps_.begin() + lane_ends_[lane];
  const auto after = std::upper_bound(begin, end, step);
  if (after == begin) return {};
  const auto place = static_cast<std::size_t>(after - from_steps_.begin()) - 1;
  Row row = table.row(items_[place]);
  const std::uint64_t start = (step - from_steps_[place]) * unroll_;
  if (start >= row.length) return {};  // the lane has run out
  const std::uint64_t frames = std::min<std::uint64_t>(unroll_, row.length - start);
  row.flags = static_cast<std::uint8_t>((start == 0 ? kRowReset : 0) |
                                        (start + frames == row.length ? kRowLast : 0));
  row.start = static_cast<std::uint32_t>(start);
  row.length = static_cast<std::uint32_t>(frames);
  return row;
}

}  // namespace batchwright
