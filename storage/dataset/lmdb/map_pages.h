#pragma once

#include <cstddef>
#include <span>

namespace batchwright {

/// Bytes in the memory map: reading them may fault (see fault_guard.h).
using MapBytes = std::span<const std::byte>;

/// Asks the kernel to read these bytes of a map soon. Threads: any.
void prefetch(MapBytes bytes);

/// Puts the pages of these bytes in place, so that a later read meets no page fault: waits for what
/// prefetch() asked for, and maps it. What was not asked for is read one page after the other, for
/// the map is read without the kernel's own readahead. Pages that cannot be read are left to the
/// reader that needs them, whose fault tells why. Threads: any.
void bring_in(MapBytes bytes);

/// The file that a map shows, and where the map begins.
struct MapOrigin {
  int descriptor = -1;
  const std::byte* begin = nullptr;  ///< The address of the file's first byte.
};

/// Gives the memory of these bytes back to the kernel. They stay in memory where another process
/// has them mapped, and are read from the disk again when they are needed. Threads: any.
void let_go(MapBytes bytes, const MapOrigin& file);

}  // namespace batchwright
