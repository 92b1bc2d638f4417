#pragma once

#include <string>

#include "daemon/delivery/feed/plans/planner.h"

namespace batchwright {

/// How many of a dataset's sequences an epoch has, and what became of the others: "60 sequences",
/// or "56 of 60 sequences (2 left out by min_length and max_length, 2 dropped by remainder)".
std::string describe_sequences(const PlannedEpoch& epoch, const PlanSettings& settings);

}  // namespace batchwright
