// The daemon's configuration, as text.

#include "daemon/config/config.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_bound.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

/// A file's text costs many times its own bytes, and no more than that.
constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;

/// What is taken of [feed.features] and [[feed.style]] is sound, and has a text of its own.
void check_features(const RecipeSettings& features) {
  require(check_recipe(features).has_value(), "a feed's recipe was checked");
  require(recipe_text(features).empty() != asks_anything(features), "a recipe has a text");
  for (const StyleSettings& style : features.styles) {
    require(style.weight >= 0, "a style has a weight");
  }
}

/// What is taken of a live feed is what its pool takes, and has a length for each field.
void check_live(const FeedConfig& feed) {
  const LiveFeedSettings& live = *feed.served.live;
  require(feed.dataset.empty(), "a live feed has no dataset");
  require(validate(live.schema).has_value() && live.schema.primary() == 0, "its fields are sound");
  require(live.pool.frame_bytes.size() == live.schema.fields.size(), "each of them has a length");
  LiveSettings asked = live.pool;
  if (asked.select == LiveSelect::fifo && asked.reuse == 1) asked.fresh_share.reset();  // filled in
  require(!find_fault(asked) && asked.max_length > 0, "its settings were checked");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryBound bound(kMostBytes);
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto config = parse_config(text, "fuzz.toml");
  if (!config) {
    require(config.error().code == ErrorCode::bad_configuration, "the error is bad_configuration");
    require(config.error().message.starts_with("fuzz.toml"), "the error names the file");
    return 0;
  }
  require(!config->feeds.empty(), "a configuration has a feed");
  for (const FeedConfig& feed : config->feeds) {
    require(!feed.served.name.empty(), "a feed has a name");
    check_features(feed.served.features);
    if (feed.served.live) {
      check_live(feed);
      continue;
    }
    require(!feed.dataset.empty(), "a feed that is not live has a dataset");
    require(check_settings(feed.served.plan).has_value(), "a feed's plan was checked");
  }
  return 0;
}
