#include "client/command/data/configured_feed.h"

#include <fmt/format.h>

namespace batchwright {
namespace {

Result<FeedConfig> choose(const Config& config, const std::filesystem::path& file,
                          const std::string& name) {
  if (name.empty() && config.feeds.size() == 1) return config.feeds.front();
  std::string names;
  for (const FeedConfig& feed : config.feeds) {
    if (feed.served.name == name) return feed;
    names += (names.empty() ? "" : " ") + feed.served.name;
  }
  return Error{ErrorCode::not_found,
               fmt::format("{}: {}; allowed with --feed: {}", file.string(),
                           name.empty() ? "several feeds" : "no feed \"" + name + "\"", names)};
}

}  // namespace

Result<std::vector<std::uint32_t>> ConfiguredFeed::lengths(Epoch epoch) const {
  if (!recipe) {
    return std::vector<std::uint32_t>(snapshot->lengths().begin(), snapshot->lengths().end());
  }
  const auto made = recipe->lengths(*snapshot, epoch);
  if (!made) return made.error();
  return **made;
}

Result<ConfiguredFeed> open_configured_feed(const std::filesystem::path& file,
                                            const std::string& name, ChangeRecipe change) {
  const auto config = load_config(file);
  if (!config) return config.error();
  auto feed = choose(*config, file, name);
  if (!feed) return feed.error();
  if (feed->served.live) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: feed {} is live; allowed: one with a dataset", file.string(),
                             feed->served.name)};
  }
  return open_feed(*std::move(feed), change);
}

Result<ConfiguredFeed> open_feed(FeedConfig feed, ChangeRecipe change) {
  ConfiguredFeed opened{std::move(feed), std::make_shared<Catalog>(), nullptr, nullptr};
  const auto dataset =
      opened.catalog->open(opened.config.dataset, VerifyRecords::once, Locking::permitted);
  if (!dataset) return dataset.error();
  auto snapshot = (*dataset)->snapshot();
  if (!snapshot) return snapshot.error();
  opened.snapshot = *std::move(snapshot);
  RecipeSettings& features = opened.config.served.features;
  if (change != nullptr) {
    features = change(features);
  } else if (!asks_anything(features)) {
    return opened;
  }
  auto recipe =
      Recipe::open(features, *opened.snapshot, opened.config.served.plan.seed, *opened.catalog);
  if (!recipe) return recipe.error();
  opened.recipe = *std::move(recipe);
  return opened;
}

}  // namespace batchwright
