#pragma once

#include <chrono>
#include <vector>

#include "daemon/assembly/copying/copy_choice.h"

namespace batchwright {

/// Times each way that this processor has, std::memcpy() first, for each class of runs: out of
/// memory that no cache holds into shared memory such as an arena is. The ways take turns, and the
/// best of each one's rounds counts. It goes on for up to `most`, and for one whole round in any
/// case. Takes 8 MiB of memory meanwhile; empty where that cannot be had.
std::vector<CopyRates> time_copies(std::chrono::steady_clock::duration most);

}  // namespace batchwright
