#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "tests/storage/ingest/encode.h"
#include "tests/storage/recipe/sound_dataset.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

std::vector<std::byte> file_of(const std::vector<float>& sound, const char* name, int format) {
  const TemporaryFolder folder;
  encode(folder / name, format, sound, 16'000);
  std::ifstream file(folder / name, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto all = std::as_bytes(std::span(bytes));
  return {all.begin(), all.end()};
}

/// What `batchwright ingest audio --store encoded` writes.
void make_encoded_dataset(const std::filesystem::path& path,
                          const std::vector<std::vector<std::byte>>& files, std::uint32_t samples) {
  const Schema schema{{{"samples", FieldKind::primary, DType::uint8, {0}, {}},
                       {"encoded", FieldKind::independent, DType::uint8, {}, {}},
                       {"rate", FieldKind::independent, DType::uint8, {0}, {}}},
                      {{"store", "encoded"}, {"channel", "only"}}};
  auto writer = DatasetWriter::open(path, schema);
  REQUIRE(writer);
  std::size_t number = 0;
  for (const auto& file : files) {
    const std::vector<FieldValue> values = {
        {{}, samples},
        {std::span<const std::byte>(file), static_cast<std::uint32_t>(file.size())},
        {{}, 16'000}};
    REQUIRE(writer->append({"file-" + std::to_string(number++), values}));
  }
  REQUIRE(writer->commit());
}

RecipeSettings recipe_like(const char* like) {
  RecipeSettings settings;
  settings.like = like;
  return settings;
}

constexpr int kFlacOf16 = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;

}  // namespace

TEST_CASE("recipe: features of encoded sound are those of its samples") {
  const TemporaryFolder folder;
  make_sound_dataset(folder / "pcm", {{9000}});
  const auto sound = made_sound(0, 9000);
  make_encoded_dataset(folder / "encoded",
                       {file_of(sound, "a.flac", kFlacOf16),
                        file_of(sound, "a.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16)},
                       9000);
  for (const char* like : {"kaldi", "whisper", "nemo"}) {
    const OpenedRecipe pcm(folder / "pcm", recipe_like(like));
    const OpenedRecipe encoded(folder / "encoded", recipe_like(like));
    CHECK(encoded.features(0) == pcm.features(0));
    CHECK(encoded.features(1) == pcm.features(0));
    CHECK(encoded.recipe->schema().fields.size() == 1);
  }
}

TEST_CASE("recipe: noise may be encoded, of another rate, and is the same each time it is drawn") {
  const TemporaryFolder folder;
  make_sound_dataset(folder / "s", {{9000}, {9000}});
  make_sound_dataset(folder / "noise", {{20'000}});
  make_encoded_dataset(folder / "encoded", {file_of(made_sound(0, 20'000), "n.flac", kFlacOf16)},
                       20'000);
  RecipeSettings settings = recipe_like("kaldi");
  settings.styles.emplace_back().noise = {folder / "noise"};
  const OpenedRecipe pcm(folder / "s", settings);
  settings.styles[0].noise = {folder / "encoded"};
  const OpenedRecipe encoded(folder / "s", settings);
  for (const std::uint64_t ordinal : {0U, 1U, 0U}) {
    CHECK(encoded.features(ordinal) == pcm.features(ordinal));
  }
}

TEST_CASE("recipe: noise that is infinite once it is resampled is refused") {
  const TemporaryFolder folder;
  make_sound_dataset(folder / "s", {{9000}});
  std::vector<float> loud(2000);
  for (std::size_t n = 0; n < loud.size(); ++n) loud[n] = n % 20 < 10 ? 3.4e38F : -3.4e38F;
  make_encoded_dataset(folder / "noise", {file_of(loud, "n.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT)},
                       2000);
  RecipeSettings settings = recipe_like("kaldi");
  settings.styles.emplace_back().noise = {folder / "noise"};
  OpenedRecipe opened(folder / "s");
  CHECK(opened.refusal(settings) == "");
  settings.sample_rate = 8000;
  CHECK(opened.refusal(settings) == "noise: " + (folder / "noise").string() +
                                        ": sequence 0: samples too large to be resampled");
}

TEST_CASE("recipe: damaged sound is a corrupt record, or decodes to as many samples as before") {
  const auto sound = made_sound(0, 9000);
  const struct {
    const char* name;
    int format;
  } kinds[] = {{"a.flac", kFlacOf16},
               {"a.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
               {"a.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS},
               {"a.opus", SF_FORMAT_OGG | SF_FORMAT_OPUS}};
  for (const auto& kind : kinds) {
    const TemporaryFolder folder;
    const auto whole = file_of(sound, kind.name, kind.format);
    std::vector<std::vector<std::byte>> files;
    std::uint64_t seed = 1;
    const auto below = [&seed](std::uint64_t bound) {
      seed = mix64(seed + 1);
      return seed % bound;
    };
    for (int i = 0; i < 120; ++i) {
      auto file = whole;
      if (i % 3 == 0) file.resize(1 + below(file.size() - 1));
      const std::uint64_t flips = below(4) + (i % 3 == 0 ? 0 : 1);
      for (std::uint64_t k = 0; k < flips; ++k) {
        file[below(file.size())] ^= std::byte{static_cast<unsigned char>(1 + below(255))};
      }
      files.push_back(std::move(file));
    }
    make_encoded_dataset(folder / "s", files, 9000);
    const OpenedRecipe opened(folder / "s", recipe_like("kaldi"));
    RowMaker maker;
    std::size_t refused = 0;
    for (std::uint64_t i = 0; i < files.size(); ++i) {
      std::vector<MadeField> row;
      const auto made = opened.try_make(maker, i, 0, row);
      refused += made ? 0 : 1;
      if (made) {
        CHECK(row[0].length == 54);
      } else {
        CHECK(made.error().code == ErrorCode::corrupt_record);
        CHECK(made.error().message.starts_with("encoded sound"));
      }
    }
    CAPTURE(kind.name);
    CHECK(refused > 30);
  }
}

TEST_CASE("recipe: encoded sound of another length than its record says is to be ingested again") {
  const auto file = file_of(made_sound(0, 9000), "a.flac", kFlacOf16);
  const auto refusal = [&file](std::uint32_t length) {
    const TemporaryFolder folder;
    make_encoded_dataset(folder / "s", {file}, length);
    const OpenedRecipe opened(folder / "s", recipe_like("kaldi"));
    RowMaker maker;
    std::vector<MadeField> row;
    const auto made = opened.try_make(maker, 0, 0, row);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == ErrorCode::corrupt_record);
    return made.error().message;
  };
  CHECK(refusal(8999) ==
        "encoded sound has more than 8999 samples at 16000 Hz, its record says 8999 at 16000 Hz; "
        "ingest it again");
  CHECK(refusal(9001) ==
        "encoded sound has 9000 samples at 16000 Hz, its record says 9001 at 16000 Hz; ingest it "
        "again");
}

TEST_CASE("recipe: all stored files that do not decode to what their records say are found") {
  const auto whole = file_of(made_sound(0, 9000), "a.flac", kFlacOf16);
  const auto shorter = file_of(made_sound(0, 8000), "a.flac", kFlacOf16);
  const auto longer = file_of(made_sound(0, 90'000), "a.flac", kFlacOf16);
  auto cut = whole;
  cut.resize(cut.size() - 100);
  const TemporaryFolder folder;
  make_encoded_dataset(folder / "s", {whole, shorter, whole, longer, cut, whole}, 9000);
  for (const unsigned threads : {1U, 3U}) {
    std::vector<std::uint64_t> shown;
    const auto broken = verify_sound(folder / "s", threads, [&shown](auto checked, auto all) {
      CHECK(all == 6);
      shown.push_back(checked);
    });
    REQUIRE_MESSAGE(broken, broken.error().message);
    // Whichever thread took the last one.
    REQUIRE_FALSE(shown.empty());
    CHECK(shown.back() == 6);
    CHECK(std::is_sorted(shown.begin(), shown.end()));
    REQUIRE(broken->size() == 3);
    CHECK((*broken)[0].ordinal == Ordinal{1});
    CHECK((*broken)[0].key == "file-1");
    CHECK(contains((*broken)[0].reason, "has 8000 samples at 16000 Hz"));
    CHECK(contains((*broken)[1].reason, "more than 9000 samples"));
    CHECK(contains((*broken)[2].reason, "truncated"));
    for (const BrokenRecord& each : *broken) CHECK(contains(each.reason, "ingest it again"));
  }
  make_sound_dataset(folder / "pcm", {{1000}});
  CHECK(verify_sound(folder / "pcm", 1, {})->empty());
}
