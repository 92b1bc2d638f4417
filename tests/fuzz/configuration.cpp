// The daemon's configuration, as text.

#include "daemon/config/config.h"
#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto config = parse_config(text, "fuzz.toml");
  if (!config) {
    require(config.error().code == ErrorCode::bad_configuration, "the error is bad_configuration");
    require(config.error().message.starts_with("fuzz.toml"), "the error names the file");
    return 0;
  }
  require(!config->feeds.empty(), "a configuration has a feed");
  for (const FeedConfig& feed : config->feeds) {
    require(!feed.served.name.empty() && !feed.dataset.empty(), "a feed has a name and a dataset");
    require(check_settings(feed.served.plan).has_value(), "a feed's plan was checked");
    require(check_recipe(feed.served.features).has_value(), "a feed's recipe was checked");
    require(asks_anything(feed.served.features) != recipe_text(feed.served.features).empty(),
            "a recipe that asks for anything has a text");
  }
  return 0;
}
