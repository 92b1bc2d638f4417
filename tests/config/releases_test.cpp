// What a release made of configurations, as its fingerprints and terms tell it: checkpoints and
// journals have them, and go on only where a later release makes the same of the same text.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "daemon/config/config.h"
#include "daemon/delivery/feed/feed_settings.h"
#include "formats/base/bytes/hash.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::size_t kConfigurations = 1000;

std::uint64_t hash_of(const std::string& text) { return fnv1a(kFnv1aBasis, text); }

/// What stands before a configuration in the file: the fingerprint's settings, and hashes of the
/// terms and of the recipe's text. Nothing where the configuration is refused. `draws`: the version
/// that a feed has in that release which does not say one.
std::optional<std::string> kept_of(const std::string& text, const Snapshot& snapshot,
                                   std::uint32_t draws) {
  auto config = parse_config(text, "x.toml");
  if (!config) return std::nullopt;
  FeedSettings& feed = config->feeds.at(0).served;
  if (text.find("draws = ") == std::string::npos) feed.features.draws = draws;
  return fmt::format("{:016x} {:016x} {:016x}", fingerprint_of(snapshot, feed).settings,
                     hash_of(terms_text(feed, snapshot.schema())),
                     hash_of(recipe_text(feed.features)));
}

Result<std::shared_ptr<const Snapshot>> small_snapshot(const std::filesystem::path& folder) {
  make_small_dataset(folder / "data", {1, 2, 3});
  Catalog catalog;
  const auto dataset = catalog.open({folder / "data"});
  if (!dataset) return dataset.error();
  return (*dataset)->snapshot();
}

}  // namespace

TEST_CASE("config: fingerprints and terms of a thousand configurations are those of each release") {
  const TemporaryFolder folder;
  const auto snapshot = small_snapshot(folder.path());
  REQUIRE(snapshot);
  for (const std::string release : {"0.1.0"}) {
    const std::uint32_t draws = release == "0.1.0" ? 1 : RecipeSettings{}.draws;
    std::ifstream file(BATCHWRIGHT_TEST_DATA "/releases/" + release + "/configurations.txt");
    std::size_t count = 0;
    constexpr std::size_t kKept = 3 * 17;  // bytes of the hashes
    for (std::string line; std::getline(file, line); ++count) {
      REQUIRE(line.size() > kKept);
      const std::string text = line.substr(kKept);
      CAPTURE(text);
      CHECK(kept_of(text, **snapshot, draws) == line.substr(0, kKept - 1));
    }
    CHECK(count == kConfigurations);
  }
}

// How the file of a release is made: BATCHWRIGHT_CANDIDATES names what configurations.py printed.
TEST_CASE("config: the configurations of a release are written for later ones" *
          doctest::skip(std::getenv("BATCHWRIGHT_CANDIDATES") == nullptr)) {
  const TemporaryFolder folder;
  const auto snapshot = small_snapshot(folder.path());
  REQUIRE(snapshot);
  std::ifstream candidates(std::getenv("BATCHWRIGHT_CANDIDATES"));
  std::size_t count = 0;
  for (std::string line; count < kConfigurations && std::getline(candidates, line);) {
    const auto kept = kept_of(line, **snapshot, RecipeSettings{}.draws);
    if (!kept) continue;
    fmt::print("{} {}\n", *kept, line);
    ++count;
  }
  CHECK(count == kConfigurations);
}
