#pragma once

#include "tests/papers/table.h"

namespace batchwright::testing {

/// The parameters of stochastic data sweeping (Deng et al. 2015).
void sweep_table(Table& table);

}  // namespace batchwright::testing
