#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "storage/dataset/dataset.h"
#include "storage/features/recipe/recipe.h"

namespace batchwright::test {

/// One sequence of made-up sound.
struct MadeSound {
  std::size_t samples = 0;
  std::uint32_t rate = 16'000;  ///< Hz
  std::uint32_t labels = 0;     ///< Values 0, 1, ...
  std::int32_t speaker = 0;
};

/// Speech-like enough: no two sounds, and no two places of one, are alike.
inline std::int16_t made_sample(std::uint64_t ordinal, std::uint64_t n) {
  const auto noise = static_cast<std::int64_t>(mix64(ordinal * 1'000'003 + n) % 4001) - 2000;
  const double tone =
      8000 * std::sin(0.01 * static_cast<double>(n) * (1 + static_cast<double>(ordinal % 7)));
  return static_cast<std::int16_t>(static_cast<double>(noise) + tone);
}

inline std::vector<float> made_sound(std::uint64_t ordinal, std::size_t samples) {
  std::vector<float> sound;
  for (std::size_t n = 0; n < samples; ++n) {
    sound.push_back(static_cast<float>(made_sample(ordinal, n)) / 32768);
  }
  return sound;
}

/// What `batchwright ingest audio --store pcm` writes, and beside it labels and speakers.
inline Schema sound_schema() {
  return {{{"audio", FieldKind::primary, DType::int16, {}, {}},
           {"rate", FieldKind::independent, DType::uint8, {0}, {}},
           {"labels", FieldKind::independent, DType::int32, {}, {}},
           {"speaker", FieldKind::scalar, DType::int32, {}, {}}},
          {{"store", "pcm"}, {"channel", "only"}}};
}

inline void make_sound_dataset(const std::filesystem::path& path,
                               const std::vector<MadeSound>& sounds, bool silent = false) {
  auto writer = DatasetWriter::open(path, sound_schema());
  REQUIRE_MESSAGE(writer, writer.error().message);
  for (std::size_t i = 0; i < sounds.size(); ++i) {
    std::vector<std::int16_t> samples;
    for (std::size_t n = 0; n < sounds[i].samples; ++n) {
      samples.push_back(silent ? std::int16_t{0} : made_sample(i, n));
    }
    std::vector<std::int32_t> labels;
    for (std::uint32_t t = 0; t < sounds[i].labels; ++t) {
      labels.push_back(static_cast<std::int32_t>(t));
    }
    const std::vector<FieldValue> values = {
        {std::as_bytes(std::span(samples)), static_cast<std::uint32_t>(samples.size())},
        {{}, sounds[i].rate},
        {std::as_bytes(std::span(labels)), sounds[i].labels},
        {std::as_bytes(std::span(&sounds[i].speaker, 1)), 1}};
    const auto added = writer->append({"sound-" + std::to_string(i), values});
    REQUIRE_MESSAGE(added, added.error().message);
  }
  REQUIRE(writer->commit());
}

/// A dataset with a recipe for it.
struct OpenedRecipe {
  Catalog catalog;
  std::shared_ptr<const Snapshot> snapshot;
  std::shared_ptr<const Recipe> recipe;

  explicit OpenedRecipe(const std::filesystem::path& dataset) {
    const auto opened = catalog.open({dataset});
    REQUIRE_MESSAGE(opened, opened.error().message);
    const auto taken = (*opened)->snapshot();
    REQUIRE_MESSAGE(taken, taken.error().message);
    snapshot = *taken;
  }
  OpenedRecipe(const std::filesystem::path& dataset, const RecipeSettings& settings,
               std::uint64_t seed = 7)
      : OpenedRecipe(dataset) {
    auto made = Recipe::open(settings, *snapshot, seed, catalog);
    REQUIRE_MESSAGE(made, made.error().message);
    recipe = *std::move(made);
  }

  /// Why a recipe is refused; empty where it is not.
  std::string refusal(const RecipeSettings& settings) {
    const auto made = Recipe::open(settings, *snapshot, 7, catalog);
    return made ? "" : made.error().message;
  }

  Result<void> try_make(RowMaker& maker, std::uint64_t ordinal, std::uint64_t epoch,
                        std::vector<MadeField>& row, std::uint64_t use = 0) const {
    const auto record = snapshot->record(Ordinal{ordinal});
    REQUIRE_MESSAGE(record, record.error().message);
    std::vector<FieldValue> values;
    for (std::size_t f = 0; f < record->fields(); ++f) values.push_back(record->field(f));
    const auto keys = recipe->draw_keys(*snapshot, Epoch{epoch});
    REQUIRE_MESSAGE(keys, keys.error().message);
    return maker.make(*recipe, keys->of(Ordinal{ordinal}, use), values, row);
  }

  std::vector<MadeField> make(RowMaker& maker, std::uint64_t ordinal, std::uint64_t epoch = 0,
                              std::uint64_t use = 0) const {
    std::vector<MadeField> row;
    const auto made = try_make(maker, ordinal, epoch, row, use);
    REQUIRE_MESSAGE(made, made.error().message);
    return row;
  }

  std::vector<float> features(std::uint64_t ordinal, std::uint64_t epoch = 0,
                              std::uint64_t use = 0) const {
    RowMaker maker;
    const auto row = make(maker, ordinal, epoch, use);
    std::vector<float> values(row[0].bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), row[0].bytes.data(), row[0].bytes.size());
    return values;
  }

  std::vector<std::int32_t> labels(std::uint64_t ordinal, std::uint64_t epoch = 0) const {
    RowMaker maker;
    const auto row = make(maker, ordinal, epoch);
    const auto field = recipe->schema().find("labels");
    REQUIRE(field);
    std::vector<std::int32_t> values(row[*field].bytes.size() / sizeof(std::int32_t));
    const std::vector<std::byte>& bytes = row[*field].bytes;
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

}  // namespace batchwright::test
