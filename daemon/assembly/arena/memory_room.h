#pragma once

#include <cstddef>
#include <filesystem>

namespace batchwright {

/// Bytes of memory that this process can have. The largest number where nothing can be read.
struct MemoryRoom {
  /// Now, without swapping, and without the kernel's killer: the least of MemAvailable and of what
  /// each control group above the process has left.
  std::size_t available;
  /// When others have given back what they can: the least of MemTotal and of the groups' limits.
  std::size_t most;
};

/// Control groups of version 1 and 2. `root` is "/", or a copy of /proc and /sys.
MemoryRoom memory_room(const std::filesystem::path& root = "/");

}  // namespace batchwright
