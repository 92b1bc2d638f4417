#include "daemon/assembly/arena/control_group.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// A line is "NUMBER:CONTROLLERS:/PATH"; version 2 has number 0 and no controllers.
std::filesystem::path own_group(const std::filesystem::path& root, GroupVersion version) {
  const std::string groups = file_text(root / "proc/self/cgroup").value_or("");
  for (const std::string_view line : split_lines(groups)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(":/", first + 1);
    if (first == line.npos || second == line.npos) continue;
    const auto controllers = split(line.substr(first + 1, second - first - 1), ',');
    const bool has_memory =
        std::find(controllers.begin(), controllers.end(), "memory") != controllers.end();
    if (version == GroupVersion::v1 ? has_memory : line.starts_with("0::")) {
      return line.substr(second + 2);
    }
  }
  return {};
}

}  // namespace batchwright
