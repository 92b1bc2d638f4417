#pragma once

#include "daemon/planning/stages/plan_builder.h"

namespace batchwright {

/// Given boundaries must reach the longest item that any epoch may use. Errors: infeasible.
Result<void> check_boundaries(const PlanBuilder& builder, const PlanSettings& settings);

/// Fills builder.order with the items used, in the order asked for, and for buckets of lengths
/// `buckets` and `used_buckets`. Cost: O(n) time, 8 bytes an item, and spare_bytes() to sort.
/// `seed` is seed + epoch. Errors: infeasible.
Result<void> order_items(PlanBuilder& builder, const PlanSettings& settings, std::uint64_t seed);

}  // namespace batchwright
