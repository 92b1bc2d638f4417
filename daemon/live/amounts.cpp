#include "daemon/live/amounts.h"

#include <algorithm>

namespace batchwright {

std::uint64_t step_total(const LiveSettings& settings, const UnitSums& sums) {
  switch (settings.step_unit) {
    case StepUnit::sequences:
    case StepUnit::lanes: return sums.rows;
    case StepUnit::groups: return sums.units;
    case StepUnit::frames: return sums.frames;
  }
  return 0;
}

std::uint64_t batch_places(const LiveSettings& settings, const UnitSums& sums) {
  return settings.groups == LiveGroups::batch ? sums.units : sums.rows;
}

std::uint64_t Amounts::of(const UnitSums& sums) const {
  if (settings.step_unit == StepUnit::groups) return sums.units * largest_group;
  const std::uint64_t here = settings.step_unit == StepUnit::frames ? sums.frames : sums.rows;
  return here + sums.missing * settings.longest();
}

std::int64_t Amounts::full_step() const {
  const std::uint64_t units = settings.step_unit == StepUnit::groups ? largest_group : 1;
  return static_cast<std::int64_t>(settings.fresh() * units);
}

std::int64_t Amounts::room_in(std::int64_t steps) const {
  if (steps < 1) return 0;
  if (lanes.exist()) return lanes.room_in(steps);
  const std::int64_t full = full_step();
  const std::int64_t largest = settings.step_unit == StepUnit::groups
                                   ? 1
                                   : static_cast<std::int64_t>(settings.longest() * largest_group);
  const std::int64_t sure = full - (std::min(largest, full) - 1);
  // More than any pool holds is no limit.
  constexpr std::int64_t kMost = std::int64_t{1} << 61;
  if (sure > 0 && steps - 1 > kMost / sure) return kMost;
  return full + (steps - 1) * sure;
}

std::int64_t Amounts::most_claimed() const {
  const bool whole = settings.groups == LiveGroups::batch;
  const auto world = static_cast<std::int64_t>(settings.world);
  const std::int64_t too_little =
      (world - 1) * static_cast<std::int64_t>(whole ? largest_group : 1);
  const std::int64_t most = static_cast<std::int64_t>(settings.pool_sequences) - too_little;
  if (!settings.bounded()) return most;
  const auto steps = static_cast<std::int64_t>(*settings.max_staleness) + 1;
  // So it is granted at the latest when a rank has no row and nothing waits for its lanes.
  if (lanes.exist()) return std::min(most, lanes.room_of_rank(steps));
  return settings.step_unit == StepUnit::sequences ? std::min(most, room_in(steps)) : most;
}

}  // namespace batchwright
