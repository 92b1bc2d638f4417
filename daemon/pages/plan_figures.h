#pragma once

#include <memory>
#include <string>

#include "daemon/delivery/delivery.h"

namespace batchwright {

/// The plan that a request names. It keeps its data alive, so the feed may be removed meanwhile.
struct PlanQuestion {
  std::string feed;
  Epoch epoch;
  FeedSettings settings;
  std::shared_ptr<const Snapshot> snapshot;
  std::shared_ptr<const EpochSource> planned;  ///< Null: the epoch is not planned yet.
};

/// The page /feeds/NAME/plan: one JSON object, as README.md of stats describes it. For the planning
/// thread: plans the epoch if need be, then passes over all its rows.
/// Errors: those of plan_snapshot().
Result<std::string> plan_figures(const PlanQuestion& question);

}  // namespace batchwright
