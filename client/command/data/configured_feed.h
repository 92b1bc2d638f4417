#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "daemon/config/config.h"
#include "storage/features/recipe/recipe.h"

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

/// Makes another recipe of a feed's.
using ChangeRecipe = RecipeSettings (*)(const RecipeSettings&);

/// Relative paths in the configuration count from the folder that the program runs in, as they do
/// for the daemon. `name` may be empty where the file has one feed. With `change` there is a recipe
/// even if it asks for nothing.
/// Errors: those of load_config(); not_found, which lists the feeds; those of opening the data.
Result<ConfiguredFeed> open_configured_feed(const std::filesystem::path& file,
                                            const std::string& name, ChangeRecipe change = nullptr);

/// The same for a feed that is known.
Result<ConfiguredFeed> open_feed(FeedConfig feed, ChangeRecipe change = nullptr);

}  // namespace batchwright
