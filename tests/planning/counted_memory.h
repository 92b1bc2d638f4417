#pragma once

#include <cstddef>

namespace batchwright::testing {

/// The most memory that was allocated at once since begin_counting(), beyond what was then.
/// Counts operator new, and malloc and its like in what is linked with --wrap.
/// Threads: one.
void begin_counting();
std::size_t counted_peak_bytes();
/// What is allocated now beyond what was at begin_counting().
std::size_t counted_kept_bytes();

}  // namespace batchwright::testing
