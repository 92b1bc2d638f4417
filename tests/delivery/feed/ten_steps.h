#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "daemon/delivery/feed/plans/planner.h"

namespace batchwright {

/// Ten steps of epoch 0.
inline PlannedEpoch ten_steps() {
  static const std::vector<std::uint32_t> lengths(20, 5);
  PlanSettings settings;
  settings.size = 2;
  auto plan = plan_epoch(lengths, settings, Epoch{0});
  REQUIRE(plan);
  const auto source = std::make_shared<const EpochSource>(Epoch{0}, Fingerprint{}, nullptr, *plan);
  return {source, source, {}, {}, 0.0};
}

}  // namespace batchwright
