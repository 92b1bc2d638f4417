#pragma once

#include "daemon/planning/stages/plan_builder.h"

namespace batchwright {

/// Serves remainder = spread: splits the largest batches in two until their number is a multiple of
/// `world`. Every part is within the capacity that the whole was in. Errors: infeasible.
Result<void> spread_batches(PlanBuilder& builder, const PlanSettings& settings);

/// Fills builder.sequence: permutes the batches as asked for, and drops or repeats some so that
/// their number is a multiple of `world`. `seed` is seed + epoch. Errors: infeasible.
Result<void> sequence_batches(PlanBuilder& builder, const PlanSettings& settings,
                              std::uint64_t seed);

}  // namespace batchwright
