#pragma once

#include <cstdint>
#include <filesystem>

namespace batchwright {

/// The two interfaces of Linux's control groups; a machine may have mounted both.
enum class GroupVersion : std::uint8_t { v1, v2 };

/// Path of this process's group below the mount, such as "system.slice/batchwrightd.service": of
/// version 2, or of version 1's memory controller. Empty where it has none. `root` is / but in
/// tests. Threads: any.
std::filesystem::path own_group(const std::filesystem::path& root, GroupVersion version);

}  // namespace batchwright
