// What [feed.features] and [[feed.style]] come to.

#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/config/texts.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("config: a style of lists stands for their products") {
  const Config config = parsed(kFeed + R"([[feed.style]]
weight = 3
each_noise = ["/a", ["/b", "/c"]]
each_snr_db = [[0, 5], [5, 10], [10, 20]]
each_rooms = [[], "/r"]
[[feed.style]]
)");
  const auto& styles = config.feeds[0].served.features.styles;
  REQUIRE(styles.size() == 13);
  std::set<std::string> different;
  for (std::size_t k = 0; k < 12; ++k) {
    CHECK(styles[k].weight == doctest::Approx(0.25));
    RecipeSettings alone;
    alone.styles = {styles[k]};
    different.insert(recipe_text(alone));
  }
  CHECK(different.size() == 12);
  CHECK(styles[0].noise == std::vector<std::filesystem::path>{"/a"});
  CHECK(styles[11].noise == std::vector<std::filesystem::path>{"/b", "/c"});
  CHECK(styles[11].noise_draw.snr_high_db == 20);
  CHECK(styles[11].rooms == std::vector<std::filesystem::path>{"/r"});
  CHECK(styles[12] == StyleSettings{});
}

TEST_CASE("config: a style of lists with more products than memory holds is refused") {
  const auto list = [](std::size_t count, const std::string& entry) {
    std::string text = "[";
    for (std::size_t k = 0; k < count; ++k) text += entry + ",";
    return text + "]\n";
  };
  const std::string lists =
      "[[feed.style]]\neach_noise = " + list(256, "\"/n\"") + "each_rooms = " + list(256, "\"/r\"");
  CHECK(fault_of(kFeed + lists) == "");
  CHECK(fault_of(kFeed + lists + "each_snr_db = " + list(200, "[0, 1]")) ==
        "x.toml:4:1: feed.style: found lists with 13107200 products; allowed: up to 65536");
}

TEST_CASE("config: what a recipe's keys refuse, with line and column") {
  const auto fault = [](const std::string& lines) {
    return fault_of(kFeed + "[feed.features]\n" + lines + "\n");
  };
  CHECK(fault("like = \"kaldy\"").starts_with("x.toml:5:1: feed.features.like: found \"kaldy\""));
  CHECK(fault("like = \"kaldi\"\noptions = { mel_bins = 3 }")
            .starts_with("x.toml:6:13: feed.features.options: found 3; allowed: a table"));
  CHECK(fault("speeds = [0.9, 3.0]").starts_with("x.toml:5:16: feed.features.speeds: found 3"));
  CHECK(fault("stack = 2\nkeep_one_of = 2").find("allowed: one of the two ways") !=
        std::string::npos);
  CHECK(fault("options = { mel_bands = 30 }").find("mel_bands without like") != std::string::npos);
  CHECK(fault_of(kFeed + "[[feed.style]]\nsnr_db = [20, 5]\n")
            .starts_with("x.toml:5:1: feed.style.snr_db: found"));
  CHECK(fault_of(kFeed + "[feed.style]\nweight = 1\n").find("in double brackets") !=
        std::string::npos);
  CHECK(fault_of(kFeed + "[feed.featurse]\n").find("did you mean features?") != std::string::npos);
}
