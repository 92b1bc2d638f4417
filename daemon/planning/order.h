#pragma once

#include "daemon/planning/draft.h"

namespace batchwright {

/// Puts draft.items, by ascending id, into the order asked for; fills draft.bucket_ends.
/// `seed` is seed + epoch. Errors: infeasible.
Result<void> order_items(Draft& draft, const PlanSettings& settings, std::uint64_t seed);

}  // namespace batchwright
