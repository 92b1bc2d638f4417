#pragma once

#include <cstddef>
#include <span>

#include "formats/base/result.h"

namespace batchwright {

/// Sends bytes over a Unix stream socket, and with the first of them a descriptor (SCM_RIGHTS),
/// of which the receiver gets one of its own; -1: none.
///
/// It never waits: the bytes are to be far fewer than a socket's buffer holds, so that a peer that
/// does not read them costs nothing.
/// Threads: any. Errors: does_not_fit (nothing was sent: too many descriptors are on their way to
/// processes that have not received them); io_error (the peer is gone, or the buffer is full),
/// after which the connection is of no use, for some of the bytes may have been sent. No signal is
/// raised.
Result<void> send_with_descriptor(int socket, std::span<const std::byte> bytes, int descriptor);

}  // namespace batchwright
