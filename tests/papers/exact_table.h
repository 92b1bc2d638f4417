#pragma once

#include <cstdint>
#include <vector>

#include "tests/papers/table.h"

namespace batchwright::testing {

/// What sorted batches of the reference split of LJSpeech amount to, to the last digit: nothing in
/// it is left to chance. `train` are its lengths.
void exact_table(Table& table, const std::vector<std::uint32_t>& train);

}  // namespace batchwright::testing
