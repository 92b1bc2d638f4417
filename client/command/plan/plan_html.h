#pragma once

#include <filesystem>

#include "client/command/plan/plan_compare.h"
#include "client/command/plan/plan_lengths.h"
#include "daemon/planning/planning.h"

namespace batchwright {

/// Writes one self-contained page about planning these lengths: length orders, histograms of the
/// plan at hand, padding against randomness, and the table of strategies.
/// Errors: io_error, and those of planning.
Result<void> write_plan_page(const std::filesystem::path& file, const PlanLengths& lengths,
                             const PlanSettings& settings, const std::vector<Strategy>& strategies);

}  // namespace batchwright
