#include "daemon/assembly/arena/memory_room.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "daemon/assembly/arena/control_group.h"
#include "daemon/assembly/arena/proc_figure.h"
#include "formats/formats.h"

// Reserving more than there is does not fail on Linux: the kernel kills a process instead, and
// within a control group it is this one. So the figures are read first. They are a snapshot and
// no promise, but they turn the usual mistake (a slot too many) into an error with figures.

namespace batchwright {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

/// A file that holds one number; memory.max may hold "max" instead.
std::optional<std::size_t> figure(const std::filesystem::path& file) {
  return proc_figure(file, "");
}

/// How a version of control groups calls what is asked for.
struct GroupFiles {
  const char* mount;  ///< Below the root.
  const char* limit;
  const char* used;
  const char* cache[2];  ///< Its page cache in memory.stat, children included.
};
constexpr GroupFiles kVersion2{
    "sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file", "active_file"}};
constexpr GroupFiles kVersion1{"sys/fs/cgroup/memory",
                               "memory.limit_in_bytes",
                               "memory.usage_in_bytes",
                               {"total_inactive_file", "total_active_file"}};

MemoryRoom least(const MemoryRoom& one, const MemoryRoom& other) {
  return {std::min(one.available, other.available), std::min(one.most, other.most)};
}

/// What one group has left. Its page cache gives way when memory is short.
MemoryRoom group_room(const GroupFiles& files, const std::filesystem::path& group) {
  const auto limit = figure(group / files.limit);
  const auto used = figure(group / files.used);
  if (!limit || !used) return {kNoLimit, kNoLimit};
  std::size_t cache = 0;
  for (const char* word : files.cache)
    cache += proc_figure(group / "memory.stat", word).value_or(0);
  const std::size_t kept = *used - std::min(*used, cache);
  return {*limit - std::min(*limit, kept), *limit};
}

MemoryRoom groups_room(const GroupFiles& files, const std::filesystem::path& root,
                       std::filesystem::path group) {
  const std::filesystem::path mount = root / files.mount;
  // A container may see its own group as the mount, and the path that the host knows it by.
  MemoryRoom room = group_room(files, mount);
  for (; !group.empty(); group = group.parent_path()) {
    room = least(room, group_room(files, mount / group));
  }
  return room;
}

}  // namespace

MemoryRoom memory_room(const std::filesystem::path& root) {
  MemoryRoom room{kNoLimit, kNoLimit};
  if (const auto kib = proc_figure(root / "proc/meminfo", "MemAvailable:"))
    room.available = *kib * 1024;
  if (const auto kib = proc_figure(root / "proc/meminfo", "MemTotal:")) room.most = *kib * 1024;
  // Both versions: a machine may have mounted either, or both at once.
  room = least(room, groups_room(kVersion2, root, own_group(root, GroupVersion::v2)));
  return least(room, groups_room(kVersion1, root, own_group(root, GroupVersion::v1)));
}

}  // namespace batchwright
