#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "daemon/planning/stages/plan_builder.h"

namespace batchwright {

/// Truncated unrolling: which sequence each lane holds at each step. The lanes of a global step
/// are those of rank 0, then those of rank 1, and so on, so that a lane stays with its rank.
class Unrolled {
 public:
  Unrolled() = default;
  /// Deals builder.order to the lanes: the lane that is free first takes the next, of several the
  /// first. Errors: infeasible.
  static Result<Unrolled> deal(PlanBuilder& builder, const PlanSettings& settings);

  std::uint64_t steps() const { return steps_; }
  std::uint32_t lanes() const { return lanes_; }  ///< Lanes of one batch.
  Row row(const ItemTable& table, std::uint64_t step, std::uint64_t lane) const;

 private:
  static constexpr std::uint64_t kMostLanes = (1 << 24) - 1;

  /// A lane takes an item at a step.
  struct Taken {
    std::uint32_t from_step, item;
  };

  std::uint32_t lanes_ = 0;
  std::uint32_t unroll_ = 0;
  std::uint64_t steps_ = 0;
  std::vector<std::uint32_t> lane_ends_;  ///< End of each lane's part of the list below.
  std::unique_ptr<Taken[]> taken_;
  std::vector<std::uint32_t> uses_;  ///< Of the items in taken_; empty where none comes again.
};

}  // namespace batchwright
