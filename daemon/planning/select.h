#pragma once

#include <cstdint>
#include <span>

#include "daemon/planning/draft.h"

namespace batchwright {

/// Checks the lengths and counts what is left out as too short or too long; makes the table of
/// items. The same for every epoch.
/// Errors: invalid_argument (no sequences, a length out of range), infeasible (none is left).
Result<Draft> begin_draft(std::span<const std::uint32_t> lengths, const PlanSettings& settings);

/// Fills draft.items with the items of the sequences that `epoch` uses, by ascending id.
Result<void> select_items(Draft& draft, const PlanSettings& settings, Epoch epoch);

}  // namespace batchwright
