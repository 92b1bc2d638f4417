#pragma once

#include <cstdint>
#include <string>

#include "daemon/assembly/assembly.h"

namespace batchwright {

/// What is to be said where the machine, or a control group, allows less than the daemon takes with
/// `feeds` bytes for arenas and for making rows: the kernel would kill it without a word. Empty: it
/// allows enough.
std::string memory_shortage(std::uint64_t feeds, const MemoryRoom& room);

/// Gives back the memory of what only the start needed: code of this program and its libraries
/// that was read and is shared with the page cache, and heap that is free. Code that is used again
/// is mapped again out of the page cache, in windows of 64 KiB; that takes microseconds, once.
/// Threads: any.
void let_start_memory_go();

}  // namespace batchwright
