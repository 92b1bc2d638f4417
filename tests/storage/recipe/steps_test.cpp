#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "storage/features/recipe/recipe.h"
#include "tests/storage/recipe/sound_dataset.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("recipe: the DC offset is the mean of the sequence's own samples") {
  const TemporaryFolder folder;
  make_sound_dataset(folder / "d", {{5'001}, {1}});
  RecipeSettings settings;
  settings.dc_offset_removed = true;
  const OpenedRecipe opened(folder / "d", settings);
  const std::vector<float> stored = made_sound(0, 5'001);
  const double mean = std::accumulate(stored.begin(), stored.end(), 0.0) / 5'001;
  REQUIRE(std::abs(mean) > 1e-6);
  const std::vector<float> made = opened.features(0);
  REQUIRE(made.size() == stored.size());
  for (std::size_t n = 0; n < stored.size(); ++n) {
    CHECK(made[n] == stored[n] - static_cast<float>(mean));
  }
  CHECK(opened.features(1) == std::vector<float>{0});
  CHECK(opened.recipe->text().find("features.dc_offset = remove\n") != std::string::npos);
  CHECK_FALSE(draws_anything(settings));
}
