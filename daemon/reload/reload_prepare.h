#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>

#include "daemon/reload/memory_turns.h"
#include "daemon/reload/reload.h"

namespace batchwright {

/// The state that a reload starts from, copied for its thread.
struct ReloadRequest {
  ConfigSource source;
  Config running;
  std::set<std::string> failed;  ///< Feeds that no longer serve: they are opened again.
  /// What has become of the files that the feeds read which are not absent, as far as their file
  /// systems said so in time.
  std::map<std::string, DatasetStanding> standing;
  std::uint32_t numbers_left = 0;
  std::shared_ptr<MemoryBudget> memory;
  std::stop_token stop;  ///< The daemon ends: what is not ready by then is not needed.
};

/// The inputs for preparing a feed, beside its configuration.
struct FeedPreparation {
  std::shared_ptr<MemoryBudget> memory;
  std::stop_token stop;
  /// Others are prepared at the same time: `place` is the feed's in the file. Null: it is alone.
  MemoryTurns* turns = nullptr;
  std::size_t place = 0;
};

/// Opens the dataset, plans the first epoch, takes the memory and reserves the arena. Blocks, also
/// for feeds above it. Errors: those of Catalog::open(), find_fitting_data() and make_resources();
/// busy, where other feeds hold the memory that it needs, with what each holds; disconnected when
/// it is to stop.
Result<PreparedFeed> prepare_one(const FeedConfig& feed, const FeedPreparation& with,
                                 Catalog& catalog);

/// Reads the file and makes ready what it asks for. Blocks on the disk, and touches nothing that
/// runs but to take memory out of the budget.
/// Errors: those of load_config(), of Catalog::open() and prepare_feed() with the feed's name;
/// bad_configuration for what needs a restart; disconnected when it is to stop.
Result<PreparedConfig> prepare_reload(const ReloadRequest& request, Catalog& catalog);

}  // namespace batchwright
