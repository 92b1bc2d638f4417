#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "daemon/delivery/feed/plans/planner.h"

namespace batchwright {

/// An epoch of ten steps.
inline PlannedEpoch ten_steps(Epoch epoch = {}) {
  static const std::vector<std::uint32_t> lengths(20, 5);
  PlanSettings settings;
  settings.size = 2;
  auto plan = plan_epoch(lengths, settings, epoch);
  REQUIRE(plan);
  const auto source = std::make_shared<const EpochSource>(epoch, Fingerprint{}, nullptr, *plan);
  return {source, source, {}, {}, 0.0};
}

}  // namespace batchwright
