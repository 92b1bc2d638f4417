#pragma once

#include <cstdint>
#include <span>

#include "daemon/planning/plan.h"
#include "daemon/planning/stages/plan_builder.h"

namespace batchwright {

/// Lengths and how they are planned, as plan_epoch() takes them.
struct PlanInput {
  std::span<const std::uint32_t> lengths;
  const PlanSettings& settings;
  std::span<const std::uint64_t> datasets;
};

/// Finds at start what would fail in a later epoch, for one may use fewer sequences than the first
/// or cut them into fewer batches. Mostly a look at the fewest rows that any epoch has is proof
/// enough. Where it is not, epochs are planned: the one that uses least, the first ones, and
/// others up to it; those past `epochs` are epochs too.
/// `builder` has been begun, `bound` is its bound. Errors: those of plan_epoch(), with the epoch.
Result<void> check_later_epochs(const PlanInput& input, const PlanBuilder& builder,
                                const PlanBound& bound);

}  // namespace batchwright
