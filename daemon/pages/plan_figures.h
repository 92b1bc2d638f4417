#pragma once

#include <string>

#include "daemon/delivery/delivery.h"

namespace batchwright {

/// The page /feeds/NAME/plan: one JSON object, as README.md of stats describes it. For the planning
/// thread: plans the epoch if need be, then passes over all its rows.
/// Errors: those of plan_snapshot().
Result<std::string> plan_figures(const PlanQuestion& question);

}  // namespace batchwright
