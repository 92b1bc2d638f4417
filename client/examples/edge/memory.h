#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

namespace edge {

/// What a process has in memory.
struct Memory {
  std::size_t own_bytes = 0;     ///< Heap and stacks.
  std::size_t shared_bytes = 0;  ///< Arenas, which are in memory once for all that map them.
  std::size_t file_bytes = 0;    ///< Programs, libraries, datasets: the kernel may drop them.
};

constexpr double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// Nothing when there is no such process.
Memory memory_of(pid_t process);

/// The process that listens at an ipc:// endpoint; empty when none does.
std::optional<pid_t> listener_at(const std::string& endpoint);

}  // namespace edge
