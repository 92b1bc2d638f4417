#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "daemon/config/config.h"
#include "storage/recipe/recipe.h"

namespace batchwright {

/// A feed as a daemon's configuration has it, with its data open.
struct ConfiguredFeed {
  FeedConfig config;
  std::shared_ptr<Catalog> catalog;
  std::shared_ptr<const Snapshot> snapshot;
  std::shared_ptr<const Recipe> recipe;  ///< Null where rows are what is stored.

  /// The rows' lengths in an epoch. Errors: those of Recipe::lengths().
  Result<std::vector<std::uint32_t>> lengths(Epoch epoch) const;
};

/// The names in a configuration are resolved where the daemon would: against the folder that it
/// runs in. `name` may be empty where the file has one feed.
/// Errors: those of load_config(); not_found, which lists the feeds; those of opening the data.
/// `change` makes another recipe of the feed's, which is then opened even if it asks nothing.
using ChangeRecipe = RecipeSettings (*)(const RecipeSettings&);
Result<ConfiguredFeed> open_configured_feed(const std::filesystem::path& file,
                                            const std::string& name, ChangeRecipe change = nullptr);

}  // namespace batchwright
