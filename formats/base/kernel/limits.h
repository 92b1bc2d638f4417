#pragma once

#include <cstddef>
#include <string>

#include "formats/base/result.h"

namespace batchwright {

/// The system's words for an errno, and the limit of this process that may be its cause, such as
/// "File too large (a file may have 262144 bytes: ulimit -f, LimitFSIZE=)".
std::string reason_with_limit(int code);

/// Whether so many threads can be started at this moment, beside those that run: it starts them,
/// and they end at once. libzmq ends a process that cannot start its own. `what` needs them.
/// Threads: any. Errors: io_error, with the limits of the process, its user and its control group.
Result<void> room_for_threads(std::size_t count, const std::string& what);

}  // namespace batchwright
