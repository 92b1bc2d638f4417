#pragma once

#include <cstdint>
#include <string>

#include "client/library/batchwright/client.hpp"

namespace batchwright {

/// A place in the plan of a feed: a step, and rows of it that come before.
struct PlanPlace {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t rows = 0;  ///< Of the step, which are left out.
  bool is_over = false;    ///< All epochs come before.
};

/// The epochs of a feed that are counted: `epochs` from `first` on, or with 0 all.
struct CountedEpochs {
  std::string feed;
  std::uint64_t first = 0;
  std::uint64_t epochs = 0;
};

/// The place that so many rows come before, in the order of epoch, batch and row. Plans are looked
/// at alone, no batch is waited for: a call of the daemon for each thousand batches.
/// Throws client::Error.
PlanPlace place_behind(client::Connection& connection, const CountedEpochs& counted,
                       std::uint64_t rows);

}  // namespace batchwright
