#include <doctest/doctest.h>

#include <vector>

#include "storage/features/recipe/step_table.h"
#include "tests/storage/recipe/sound_dataset.h"
#include "tests/support/lengths_only.h"
#include "tests/support/no_threads.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("step table: every length's value, wherever in a block the function rises") {
  constexpr std::uint64_t kLongest = 5 * StepTable::kBlock + 1;
  for (std::uint64_t rise = 0; rise <= kLongest + 1; ++rise) {
    const auto value = [rise](std::uint64_t length, std::size_t function) -> std::uint64_t {
      return function == 0 ? (length >= rise ? 8 : 7) : (length + rise) / StepTable::kBlock;
    };
    const StepTable table(kLongest, 2, value);
    for (std::uint64_t length = 0; length <= kLongest; ++length) {
      for (std::size_t function = 0; function < 2; ++function) {
        const auto found = table.find(length, function);
        REQUIRE(found);
        REQUIRE(*found == value(length, function));
      }
    }
  }
}

TEST_CASE("step table: what it cannot hold it does not know, and all else it does") {
  // Two steps in the second block, one of two in the third, values of 2^25 and more in the last.
  const auto value = [](std::uint64_t length, std::size_t) -> std::uint64_t {
    if (length >= 256) return (std::uint64_t{1} << 25) - 1;
    return (length > 70) + (length > 80) + (length > 150 ? 2 : 0);
  };
  const StepTable table(319, 1, value);
  for (std::uint64_t length = 0; length < 320; ++length) {
    const auto found = table.find(length, 0);
    const bool held = length < 64 || (length >= 192 && length < 256);
    REQUIRE(found.has_value() == held);
    if (held) REQUIRE(*found == value(length, 0));
  }
  CHECK_FALSE(table.find(320, 0));
  CHECK_FALSE(StepTable().find(0, 0));
}

TEST_CASE("recipe: the lengths of many rows are those of each one") {
  constexpr std::uint64_t kSeed = 7;
  const TemporaryFolder folder;
  std::vector<MadeSound> sounds;
  for (std::size_t i = 0; i < 2500; ++i) {
    sounds.push_back({1 + i * 7 % 1500, i % 20 == 13 ? 8'000U : 16'000U, 0, 0});
  }
  make_sound_dataset(folder.path() / "s", sounds, true);
  for (const bool makes_features : {true, false}) {
    for (const bool keep_random : {false, true}) {
      RecipeSettings settings;
      if (makes_features) settings.like = "kaldi";
      for (const double factor : {0.9, 1.0, 1.1}) settings.speeds.push_back(*parse_speed(factor));
      settings.sample_rate = 16'000;
      if (keep_random && makes_features) {
        settings.keep.of = 3;
        settings.keep_random = true;
      }
      const OpenedRecipe opened(folder.path() / "s", settings, kSeed);
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        const auto lengths = opened.recipe->lengths(*opened.snapshot, Epoch{epoch});
        REQUIRE_MESSAGE(lengths, lengths.error().message);
        const auto keys = opened.recipe->draw_keys(*opened.snapshot, Epoch{epoch});
        REQUIRE(keys);
        for (std::uint64_t i = 0; i < sounds.size(); ++i) {
          const auto one =
              opened.recipe->measure(sounds[i].samples, sounds[i].rate, keys->of(Ordinal{i}, 0));
          REQUIRE(one);
          REQUIRE((**lengths)[i] == one->row);
        }
      }
    }
  }
}

TEST_CASE("recipe: lengths that several threads find are those that one finds") {
  constexpr std::size_t kMany = (std::size_t{1} << 20) + 7;  // two parts and more
  constexpr std::uint64_t kSeed = 7;
  const TemporaryFolder folder;
  make_sound_dataset(folder.path() / "s", {{16'000, 16'000, 0, 0}}, true);
  OpenedRecipe one(folder.path() / "s");
  std::vector<std::uint32_t> samples;
  for (std::size_t i = 0; i < kMany; ++i) {
    samples.push_back(static_cast<std::uint32_t>(4'000 + i * 7919 % 90'000));
  }
  const LengthsOnly many(one.snapshot, samples, 16'000);
  RecipeSettings settings;
  settings.like = "kaldi";
  settings.draws = 1;  // there are no records that a shard could be told by
  for (const double factor : {0.9, 1.0, 1.1}) settings.speeds.push_back(*parse_speed(factor));
  const auto recipe = Recipe::open(settings, many, kSeed, one.catalog);
  REQUIRE_MESSAGE(recipe, recipe.error().message);
  const auto shared = (*recipe)->lengths(many, Epoch{1});
  REQUIRE_MESSAGE(shared, shared.error().message);
  const NoThreads none;
  const auto alone = (*recipe)->lengths(many, Epoch{1});
  REQUIRE_MESSAGE(alone, alone.error().message);
  CHECK(**shared == **alone);
  for (std::size_t i = 0; i < kMany; i += 997) {
    const auto wanted = (*recipe)->measure(samples[i], 16'000, {kSeed, 1, i, 0});
    REQUIRE(wanted);
    REQUIRE((**shared)[i] == wanted->row);
  }
}
