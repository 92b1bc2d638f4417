#pragma once

#include <cstdint>
#include <span>

#include "daemon/planning/stages/plan_builder.h"

namespace batchwright {

/// Checks the lengths and counts what is left out as too short or too long; makes the table of
/// items. The same for every epoch. `datasets` says how many sequences each dataset has; empty
/// for one.
/// Errors: invalid_argument (no sequences, a length out of range, datasets that do not add up),
/// infeasible (none is left, or none of one mixed dataset).
Result<PlanBuilder> begin_plan(std::span<const std::uint32_t> lengths, const PlanSettings& settings,
                               std::span<const std::uint64_t> datasets);

/// The numbers of sequences of each dataset that an epoch uses for `share` of all.
std::vector<std::uint64_t> sequences_wanted(const PlanBuilder& builder,
                                            const PlanSettings& settings, double share);

/// Fills in what `epoch` uses.
Result<void> select_items(PlanBuilder& builder, const PlanSettings& settings, Epoch epoch);

}  // namespace batchwright
