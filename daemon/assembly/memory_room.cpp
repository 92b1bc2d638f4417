#include "daemon/assembly/memory_room.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

// Reserving more than there is does not fail on Linux: the kernel kills a process instead, and
// within a control group it is this one. So the figures are read first. They are a snapshot and
// no promise, but they turn the usual mistake (a slot too many) into an error with figures.

namespace batchwright {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

/// The number behind `word` at the start of a line, as in /proc/meminfo and memory.stat.
std::optional<std::size_t> figure(const std::filesystem::path& file, const std::string& word) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(word)) continue;
    std::size_t number = 0;
    if (std::sscanf(line.c_str() + word.size(), " %zu", &number) == 1) return number;
  }
  return std::nullopt;
}

/// A file that holds one number; memory.max may hold "max" instead.
std::optional<std::size_t> figure(const std::filesystem::path& file) { return figure(file, ""); }

/// What one group of version 2 has left. Its page cache gives way when memory is short.
std::size_t group_room(const std::filesystem::path& group) {
  const auto limit = figure(group / "memory.max");
  const auto used = figure(group / "memory.current");
  if (!limit || !used) return kNoLimit;
  const std::size_t cache = figure(group / "memory.stat", "inactive_file").value_or(0) +
                            figure(group / "memory.stat", "active_file").value_or(0);
  const std::size_t kept = *used - std::min(*used, cache);
  return *limit - std::min(*limit, kept);
}

/// Path of this process's group below the mount, such as "system.slice/batchwrightd.service".
std::filesystem::path own_group(const std::filesystem::path& root) {
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return {};
}

}  // namespace

std::size_t available_memory(const std::filesystem::path& root) {
  std::size_t room = kNoLimit;
  if (const auto kib = figure(root / "proc/meminfo", "MemAvailable:")) room = *kib * 1024;
  const std::filesystem::path mount = root / "sys/fs/cgroup";
  std::filesystem::path group = own_group(root);
  for (; !group.empty(); group = group.parent_path()) {
    room = std::min(room, group_room(mount / group));
  }
  return std::min(room, group_room(mount));
}

}  // namespace batchwright
