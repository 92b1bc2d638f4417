#include "daemon/assembly/copying/copy_choice.h"

#include <fmt/format.h>

#include "daemon/assembly/copying/copy_timing.h"

namespace batchwright {
namespace {

/// The advantage that is no chance.
constexpr double kClearly = 1.03;

/// A few milliseconds of the start; the timing itself stops there.
constexpr std::chrono::milliseconds kMostTiming{20};

std::string names_here() {
  std::string names(kAutoCopy);
  for (const CopyWay& way : copy_ways()) {
    if (way.runs_here()) names += fmt::format(" {}", way.name);
  }
  return names;
}

const CopyRates* rates_of(const CopyTable& table, const CopyWay& way) {
  for (const CopyRates& each : table.rates) {
    if (each.way == &way) return &each;
  }
  return nullptr;
}

}  // namespace

CopyChoice CopyChoice::fastest(std::span<const CopyRates> rates) {
  CopyChoice choice;
  for (std::size_t c = 0; c < kRunClasses && !rates.empty(); ++c) {
    const CopyRates* best = &rates.front();
    for (const CopyRates& each : rates) {
      if (each.bytes_per_second[c] > kClearly * best->bytes_per_second[c]) best = &each;
    }
    choice.ways_[c] = best->way;
  }
  return choice;
}

const CopyWay& CopyChoice::for_run(std::size_t bytes) const {
  std::size_t c = kRunClasses;
  while (c > 0 && bytes < kRunClassRows[c - 1].least_bytes) --c;
  return c == 0 ? plain_copy() : *ways_[c - 1];
}

Result<void> check_copy(std::string_view name) {
  if (name == kAutoCopy) return {};
  const CopyWay* way = find_copy_way(name);
  if (way != nullptr && way->runs_here()) return {};
  return Error{ErrorCode::bad_configuration,
               fmt::format("daemon.assembly_copy: found \"{}\", {}; allowed here: {}", name,
                           way == nullptr ? "which is no way to copy"
                                          : "which this machine's processor does not have",
                           names_here())};
}

CopyTable make_copy_table(std::string_view name) {
  CopyTable table;
  if (name == kAutoCopy) {
    table.rates = time_copies(kMostTiming);
    table.choice = CopyChoice::fastest(table.rates);
  } else if (const CopyWay* way = find_copy_way(name); way != nullptr && way->runs_here()) {
    table.choice = CopyChoice(*way);
  }
  return table;
}

std::string describe_copies(const CopyTable& table) {
  std::string text;
  for (std::size_t c = 0; c < kRunClasses; ++c) {
    const CopyWay& way = table.choice.of(static_cast<RunClass>(c));
    text += fmt::format("{}{} runs by {}", c == 0 ? "" : ", ", kRunClassRows[c].name, way.name);
    const CopyRates* own = rates_of(table, way);
    if (own == nullptr) continue;
    text += fmt::format(" at {:.1f} GB/s", own->bytes_per_second[c] / 1e9);
    if (!way.streams()) continue;
    // The first in the table: what all others are compared with.
    text += fmt::format(" ({} {:.1f})", table.rates.front().way->name,
                        table.rates.front().bytes_per_second[c] / 1e9);
  }
  return text;
}

}  // namespace batchwright
