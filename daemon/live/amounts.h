#pragma once

#include <cstdint>

#include "daemon/live/settings.h"
#include "daemon/live/unit_table.h"

namespace batchwright {

/// What units count in the budget of a step.
std::uint64_t step_total(const LiveSettings& settings, const UnitSums& sums);
/// What units count against `world`: rows, or groups where a batch holds whole groups.
std::uint64_t batch_places(const LiveSettings& settings, const UnitSums& sums);

/// The amounts by which claims are admitted: frames where the budget of a step is, else sequences.
/// What is still to come counts as max_length, and with step.groups each group as the largest.
struct Amounts {
  const LiveSettings& settings;
  const Lanes& lanes;
  std::uint64_t largest_group = 1;

  std::uint64_t of(const UnitSums& sums) const;
  /// What a full step takes of fresh sequences.
  std::int64_t full_step() const;
  /// What so many steps can take for sure: each but the last may end before a unit that is too
  /// large for the rest of it. 0 for fewer than one. With lanes: from now on.
  std::int64_t room_in(std::int64_t steps) const;
  /// Sequences that one claim may ask for; below 1: none.
  std::int64_t most_claimed() const;
};

}  // namespace batchwright
