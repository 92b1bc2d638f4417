#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/base/result.h"

namespace batchwright {

/// Whether the system gives memory for `count` sequences, of `bytes` each, at this moment; it is
/// given back at once. Asked before what grows with a dataset, and says how much that is.
///
/// `what` takes it, such as "a plan". Threads: any.
/// Errors: busy (a limit of the process or of the machine, which may pass).
Result<void> probe_memory(std::uint64_t count, std::size_t bytes, std::string_view what);

/// Gives free heap back to the system, where the allocator is glibc's. Threads: any.
void give_heap_back();

}  // namespace batchwright
