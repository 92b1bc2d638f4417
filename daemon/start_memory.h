#pragma once

namespace batchwright {

/// Gives back the memory of what only the start needed: code of this program and its libraries
/// that was read and is shared with the page cache, and heap that is free. Code that is used again
/// is mapped anew out of the page cache, in windows of 64 KiB; that takes microseconds, once.
/// Threads: any.
void let_start_memory_go();

}  // namespace batchwright
