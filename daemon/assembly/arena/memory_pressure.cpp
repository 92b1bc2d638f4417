#include "daemon/assembly/arena/memory_pressure.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/assembly/arena/control_group.h"
#include "formats/formats.h"

namespace batchwright {
namespace {

/// A line is "some avg10=1.53 avg60=0.87 avg300=0.25 total=1234567".
std::optional<double> some_share(const std::filesystem::path& file) {
  constexpr std::string_view kSome = "some avg10=";
  const std::string text = file_text(file).value_or("");
  for (const std::string_view line : split_lines(text)) {
    if (!line.starts_with(kSome)) continue;
    const auto percent = parse_real(split(line.substr(kSome.size()), ' ').front());
    if (percent && *percent >= 0.0) return *percent / 100.0;
  }
  return std::nullopt;
}

}  // namespace

double memory_pressure(const std::filesystem::path& root) {
  // Only version 2 has figures for a group.
  const auto own = own_group(root, GroupVersion::v2);
  const auto group = some_share(root / "sys/fs/cgroup" / own / "memory.pressure");
  if (group) return *group;
  return some_share(root / "proc/pressure/memory").value_or(0.0);
}

std::size_t room_under_pressure(std::size_t bytes, double pressure) {
  const double left = (kPressureHighest - pressure) / (kPressureHighest - kPressureFelt);
  // Not by a double where there is no pressure: the largest number stays what it is.
  if (left >= 1.0) return bytes;
  return static_cast<std::size_t>(static_cast<double>(bytes) * std::max(0.0, left));
}

}  // namespace batchwright
