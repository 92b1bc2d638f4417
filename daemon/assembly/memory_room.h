#pragma once

#include <cstddef>
#include <filesystem>

namespace batchwright {

/// Bytes of memory this process may still take without swapping, and without the kernel's
/// killer: the least of MemAvailable and of what each control group above it has left. The
/// largest number when nothing can be read. `root` is "/", or a copy of /proc and /sys.
std::size_t available_memory(const std::filesystem::path& root = "/");

}  // namespace batchwright
