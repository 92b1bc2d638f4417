#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "formats/formats.h"

namespace batchwright {

/// What keeps this process from a daemon's Unix socket, where that can be seen without asking the
/// daemon. ZeroMQ says nothing of it, and tries again forever.
///
/// Errors: io_error when this user may not write to the socket or not search a folder on the way,
/// with user, mode, owner and what to do; invalid_argument for a relative path whose folder is not
/// there. Empty for other endpoints, and where nothing is in the way.
/// Threads: any.
std::optional<Error> diagnose_endpoint(const std::string& endpoint);

/// Whether this process can open so many descriptors more: ZeroMQ ends a process that cannot.
/// Errors: io_error, with the limit.
Result<void> room_for_descriptors(std::size_t count);

}  // namespace batchwright
