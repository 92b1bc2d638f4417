#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "daemon/delivery/feed/feed_resources.h"

namespace batchwright {

/// Data that a feed can serve, and what serving them takes.
struct FittingData {
  FeedSettings settings;  ///< With its recipe open.
  PlannedEpoch first;     ///< The first epoch, and with it the snapshot.
  FeedNeeds needs;
  std::string why_not_newer;  ///< Why they are not the newest; empty: they are.
};

/// What the ceiling leaves, asked with what is needed (0: it is not known). It may wait for other
/// feeds that are to claim theirs first.
using MemoryLeft = std::function<std::uint64_t(std::uint64_t needed)>;

/// The newest data of a dataset that the feed can serve: those of the newest commit, or, where a
/// feed with `follow` cannot serve these, of the last one before it that it can. So a feed that
/// leaves out what was appended while it runs is still served after a restart. `left` is called
/// once, when it is known what the newest commit takes. Blocks on the disk. Errors: why the newest
/// commit cannot be served; disconnected (it was to stop).
Result<FittingData> find_fitting_data(Dataset& dataset, const FeedSettings& settings,
                                      Catalog& catalog, const MemoryLeft& left,
                                      const std::stop_token& stop = {});

}  // namespace batchwright
