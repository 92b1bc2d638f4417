#pragma once

#include <cstddef>
#include <span>

#include "client/library/memory/fault_table.h"
#include "formats/formats.h"

namespace batchwright {

/// The message about a write to an address, with a line's end; cut off where `text` ends. Calls
/// nothing that a handler of a signal may not call. Returns the bytes of it.
std::size_t explain(const FaultTable::Shown& shown, std::span<char> text) noexcept;

/// From now on a write to a batch that may only be read is explained on standard error, and the
/// signal then takes the course it would have taken. Asked for again, it makes sure that no handler
/// which was installed later stands before this one.
/// Errors: io_error. Threads: any.
Result<void> explain_faults();

}  // namespace batchwright
