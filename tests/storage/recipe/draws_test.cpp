// What the draws of a row depend on, and what they do not.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/storage/frontend/golden.h"
#include "tests/storage/ingest/samples.h"
#include "tests/storage/recipe/sound_dataset.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Rows tell what was drawn: without dither they would all be the same.
RecipeSettings dithered(std::uint32_t draws = 2) {
  RecipeSettings settings;
  settings.like = "kaldi";
  settings.dither = 50;
  settings.draws = draws;
  return settings;
}

RecipeSettings with_three_speeds() {
  RecipeSettings settings = dithered();
  for (const double factor : {0.9, 1.0, 1.1}) settings.speeds.push_back(*parse_speed(factor));
  return settings;
}

/// A sound under a key.
struct Keyed {
  std::string key;
  std::uint64_t sound = 0;
  std::size_t samples = 4000;
};

void append_sounds(const std::filesystem::path& path, const std::vector<Keyed>& sounds) {
  auto writer = DatasetWriter::open(path, sound_schema());
  REQUIRE_MESSAGE(writer, writer.error().message);
  for (const Keyed& each : sounds) {
    std::vector<std::int16_t> samples;
    for (std::size_t n = 0; n < each.samples; ++n) samples.push_back(made_sample(each.sound, n));
    const std::int32_t speaker = 0;
    const std::vector<FieldValue> values = {
        {std::as_bytes(std::span(samples)), static_cast<std::uint32_t>(samples.size())},
        {{}, 16'000},
        {{}, 0},
        {std::as_bytes(std::span(&speaker, 1)), 1}};
    REQUIRE(writer->append({each.key, values}));
  }
  REQUIRE(writer->commit());
}

std::shared_ptr<const Snapshot> snapshot_in(Catalog& catalog,
                                            const std::vector<std::filesystem::path>& shards) {
  const auto dataset = catalog.open(shards);
  REQUIRE_MESSAGE(dataset, dataset.error().message);
  const auto snapshot = (*dataset)->snapshot();
  REQUIRE_MESSAGE(snapshot, snapshot.error().message);
  return *snapshot;
}

/// The first number that a row's style would be drawn by.
std::uint64_t first_number(const DrawKeys& keys, std::uint64_t ordinal, std::uint64_t use = 0) {
  return Draws(keys.of(Ordinal{ordinal}, use), DrawStage::style).next();
}

}  // namespace

TEST_CASE("recipe: the identity of a shard is that of its first sequence, byte by byte") {
  const auto golden = golden_json("draws.json");
  const auto& line = golden.at("identities").as_array()[1];
  const std::string text(line.at("payload").as_string());
  std::vector<std::int16_t> samples(text.size() / 4);
  auto bytes = std::as_writable_bytes(std::span(samples));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  const TemporaryFolder folder;
  auto writer = DatasetWriter::open(folder / "s", sound_schema());
  REQUIRE(writer);
  const std::int32_t speaker = 0;
  const std::vector<FieldValue> values = {{bytes, static_cast<std::uint32_t>(samples.size())},
                                          {{}, 16'000},
                                          {{}, 0},
                                          {std::as_bytes(std::span(&speaker, 1)), 1}};
  REQUIRE(writer->append({std::string(line.at("key").as_string()), values}));
  REQUIRE(writer->commit());
  Catalog catalog;
  const auto identity = shard_identity(*snapshot_in(catalog, {folder / "s"}), Ordinal{0});
  REQUIRE_MESSAGE(identity, identity.error().message);
  CHECK(std::to_string(*identity) == std::string(line.at("identity").as_string()));
}

TEST_CASE("recipe: no two datasets share their draws, be it key, length or content that differs") {
  const TemporaryFolder folder;
  const std::vector<Keyed> second = {{"b", 9}};
  append_sounds(folder / "0", {{"a", 1}, second[0]});
  append_sounds(folder / "1", {{"c", 1}, second[0]});
  append_sounds(folder / "2", {{"a", 1, 4001}, second[0]});
  append_sounds(folder / "3", {{"a", 2}, second[0]});
  std::vector<std::vector<float>> rows;
  for (const char* name : {"0", "1", "2", "3"}) {
    rows.push_back(OpenedRecipe(folder / name, dithered()).features(1));
    // The same sequence has the same draws in version 1, as its place is the same.
    CHECK(OpenedRecipe(folder / name, dithered(1)).features(1) ==
          OpenedRecipe(folder / "0", dithered(1)).features(1));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) CHECK(rows[i] != rows[j]);
  }
}

TEST_CASE("recipe: a copy, and a dataset that has grown, keep their draws") {
  const TemporaryFolder folder;
  append_sounds(folder / "a", {{"x", 1}, {"y", 2}});
  const OpenedRecipe before(folder / "a", dithered());
  const auto row = before.features(1);
  append_sounds(folder / "b", {{"x", 1}, {"y", 2}});
  CHECK(OpenedRecipe(folder / "b", dithered()).features(1) == row);
  append_sounds(folder / "b", {{"z", 3}});
  CHECK(OpenedRecipe(folder / "b", dithered()).features(1) == row);
  CHECK(OpenedRecipe(folder / "b", dithered(), 8).features(1) != row);
}

TEST_CASE("recipe: each shard of a dataset has its own draws, wherever it stands in the list") {
  const TemporaryFolder folder;
  append_sounds(folder / "a", {{"a0", 1}, {"a1", 2}, {"a2", 3}});
  append_sounds(folder / "none", {});
  append_sounds(folder / "b", {{"b0", 4}, {"b1", 5}});
  Catalog catalog;
  const auto both = snapshot_in(catalog, {folder / "a", folder / "none", folder / "b"});
  const auto turned = snapshot_in(catalog, {folder / "b", folder / "a", folder / "none"});
  const auto keys_of = [&](const std::shared_ptr<const Snapshot>& of, Epoch epoch) {
    const auto recipe = Recipe::open(with_three_speeds(), *of, 7, catalog);
    REQUIRE_MESSAGE(recipe, recipe.error().message);
    const auto keys = (*recipe)->draw_keys(*of, epoch);
    REQUIRE(keys);
    return *keys;
  };
  const DrawKeys first = keys_of(both, Epoch{3});
  const DrawKeys second = keys_of(turned, Epoch{3});
  for (std::uint64_t i = 0; i < 3; ++i)
    CHECK(first_number(first, i) == first_number(second, i + 2));
  for (std::uint64_t i = 0; i < 2; ++i)
    CHECK(first_number(first, i + 3) == first_number(second, i));
  CHECK(first_number(first, 0) != first_number(first, 3));
  // Lengths, which plans draw by themselves, go along.
  const auto lengths_of = [&](const std::shared_ptr<const Snapshot>& of) {
    const auto recipe = Recipe::open(with_three_speeds(), *of, 7, catalog);
    std::vector<std::uint32_t> all;
    for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
      const auto lengths = (*recipe)->lengths(*of, Epoch{epoch});
      REQUIRE(lengths);
      const bool is_turned = of == turned;
      const auto keys = (*recipe)->draw_keys(*of, Epoch{0});
      REQUIRE(keys);
      for (std::uint64_t i = 0; i < 5; ++i) {  // one by one, and whatever its use
        const auto key = keys->at(Epoch{epoch}).of(Ordinal{i}, epoch % 2);
        CHECK((*recipe)->length(*of, Ordinal{i}, key).value() == (**lengths)[i]);
      }
      for (std::size_t i = 0; i < 5; ++i) all.push_back((**lengths)[is_turned ? (i + 2) % 5 : i]);
    }
    return all;
  };
  CHECK(lengths_of(both) == lengths_of(turned));
}

TEST_CASE("recipe: a row that comes again is drawn again, and is as long") {
  const TemporaryFolder folder;
  append_sounds(folder / "s", {{"x", 1}, {"y", 2}});
  const OpenedRecipe opened(folder / "s", with_three_speeds());
  const OpenedRecipe old(folder / "s", dithered(1));
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
    const auto first = opened.features(1, epoch);
    CHECK(opened.features(1, epoch, 1) != first);
    CHECK(opened.features(1, epoch, 2) != opened.features(1, epoch, 1));
    CHECK(opened.features(1, epoch, 1).size() == first.size());
    CHECK(old.features(1, epoch, 1) == old.features(1, epoch));
  }
}

TEST_CASE("recipe: epochs of one seed are those of another in version 1 alone") {
  const TemporaryFolder folder;
  append_sounds(folder / "s", {{"x", 1}});
  CHECK(OpenedRecipe(folder / "s", dithered(1), 1).features(0, 1) ==
        OpenedRecipe(folder / "s", dithered(1), 2).features(0, 0));
  CHECK(OpenedRecipe(folder / "s", dithered(), 1).features(0, 1) !=
        OpenedRecipe(folder / "s", dithered(), 2).features(0, 0));
}

TEST_CASE("recipe: a damaged first sequence is refused where anything is drawn, by its place") {
  const TemporaryFolder folder;
  append_sounds(folder / "s", {{"x", 1}, {"y", 2}});
  // A bit of its samples, wherever they lie in the file.
  std::vector<std::int16_t> samples;
  for (std::size_t n = 100; n < 120; ++n) samples.push_back(made_sample(1, n));
  std::string bytes = read_bytes(folder / "s" / "data.mdb");
  const auto at = bytes.find({reinterpret_cast<const char*>(samples.data()), 2 * samples.size()});
  REQUIRE(at != std::string::npos);
  bytes[at] ^= 1;
  std::ofstream(folder / "s" / "data.mdb", std::ios::binary) << bytes;
  RecipeSettings plain;
  plain.like = "kaldi";
  OpenedRecipe opened(folder / "s");
  CHECK(opened.refusal(plain).empty());
  CHECK(opened.refusal(dithered(1)).empty());
  CHECK(opened.refusal(dithered())
            .find("what is drawn depends on sequence 0, the first of its dataset: ") == 0);
}

TEST_CASE("recipe: the version of the draws is told where anything is drawn, and nowhere else") {
  const RecipeSettings second = dithered();
  CHECK(recipe_text(second) == recipe_text(dithered(1)) + "features.draws = 2\n");
  CHECK(recipe_text(dithered(1)).find("draws") == std::string::npos);
  for (const std::uint32_t draws : {1U, 2U}) {
    RecipeSettings plain;
    plain.draws = draws;
    // It asks for nothing by itself: such a feed has what is stored.
    CHECK_FALSE(asks_anything(plain));
    plain.like = "kaldi";
    plain.speeds = {*parse_speed(1.1)};
    CHECK(recipe_text(plain).find("draws") == std::string::npos);
  }
  std::vector<RecipeSettings> drawing(5);
  drawing[0].styles.resize(1);
  drawing[1].speeds = {*parse_speed(1.0), *parse_speed(1.1)};
  drawing[2].dither = 1;
  drawing[3].spec_augment = true;
  drawing[4].keep_random = true;
  for (const RecipeSettings& settings : drawing) {
    CHECK(recipe_text(settings).ends_with("features.draws = 2\n"));
  }
  RecipeSettings third = dithered(3);
  CHECK(check_recipe(third).error().message == "draws 3; allowed: 1 or 2");
}

TEST_CASE("recipe: statistics do not depend on the version of the draws") {
  const TemporaryFolder folder;
  append_sounds(folder / "s", {{"x", 1}});
  const OpenedRecipe first(folder / "s", dithered(1));
  const OpenedRecipe second(folder / "s", dithered(2));
  CHECK(first.recipe->made_by() == second.recipe->made_by());
  CHECK(second.recipe->first_draws_text() == first.recipe->text());
}
