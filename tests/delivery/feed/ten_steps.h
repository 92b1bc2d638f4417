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
  return {std::make_shared<EpochSource>(EpochSource{Epoch{0}, {}, nullptr, *plan}), {}, {}, 0.0};
}

}  // namespace batchwright
