// How long sound may be, what making rows takes, and what is kept.

#include <doctest/doctest.h>

#include <filesystem>
#include <vector>

#include "tests/storage/recipe/sound_dataset.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

RecipeSettings bounded(std::uint32_t seconds) {
  RecipeSettings settings;
  settings.like = "kaldi";
  settings.max_seconds = seconds;
  return settings;
}

/// Sequences of as many samples, each all of one value.
void make_even_dataset(const std::filesystem::path& path, const std::vector<std::size_t>& samples,
                       std::uint32_t rate, const std::vector<std::int16_t>& values) {
  auto writer = DatasetWriter::open(path, sound_schema());
  REQUIRE(writer);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::vector<std::int16_t> sound(samples[i], values[i]);
    const std::int32_t speaker = 0;
    const std::vector<FieldValue> fields = {
        {std::as_bytes(std::span(sound)), static_cast<std::uint32_t>(sound.size())},
        {{}, rate},
        {{}, 0},
        {std::as_bytes(std::span(&speaker, 1)), 1}};
    REQUIRE(writer->append({"even-" + std::to_string(i), fields}));
  }
  REQUIRE(writer->commit());
}

}  // namespace

TEST_CASE("recipe: sound that is longer than max_seconds is refused when the feed is opened") {
  const TemporaryFolder folder;
  make_sound_dataset(folder / "s", {{16'000}, {48'000}, {9'000}});
  OpenedRecipe opened(folder / "s");
  CHECK(opened.refusal(bounded(3)).empty());
  CHECK(opened.refusal(bounded(2)) ==
        "sequence 1 has 3.0 s of sound; allowed: up to max_seconds = 2");
  CHECK(opened.refusal(RecipeSettings(bounded(3600))).empty());
}

TEST_CASE("recipe: noise that has to be made may be no longer, and that which is read may") {
  const TemporaryFolder folder;
  make_sound_dataset(folder / "s", {{16'000}});
  make_sound_dataset(folder / "slow", {{800, 8'000}, {24'000, 8'000}});
  make_sound_dataset(folder / "same", {{48'000}});
  OpenedRecipe opened(folder / "s");
  RecipeSettings settings = bounded(2);
  settings.styles.emplace_back().noise = {folder / "slow"};
  CHECK(opened.refusal(settings).find("sequence 1 has 3.0 s of sound; allowed: up to max_seconds = "
                                      "2, or samples at 16000 Hz") != std::string::npos);
  settings.styles[0].noise = {folder / "same"};
  CHECK(opened.refusal(settings).empty());
}

TEST_CASE("recipe: an impulse response that is too long is refused when the feed is opened") {
  const TemporaryFolder folder;
  make_sound_dataset(folder / "s", {{4000}});
  make_even_dataset(folder / "rooms", {800, Room::kMostTaps, Room::kMostTaps + 1}, 16'000,
                    {9, 9, 9});
  make_even_dataset(folder / "fits", {800, Room::kMostTaps}, 16'000, {9, 9});
  OpenedRecipe opened(folder / "s");
  RecipeSettings settings = bounded(3600);
  settings.styles.emplace_back().rooms = {folder / "rooms"};
  CHECK(
      opened.refusal(settings).find(
          "sequence 2 is an impulse response of 1048577 taps at 16000 Hz; allowed: 1 to 1048576") !=
      std::string::npos);
  settings.styles[0].rooms = {folder / "fits"};
  CHECK(opened.refusal(settings).empty());
}

TEST_CASE("recipe: a silent impulse response is a corrupt record of the rows that draw it") {
  const TemporaryFolder folder;
  make_sound_dataset(folder / "s", {{4000}});
  make_even_dataset(folder / "rooms", {800, 800}, 16'000, {9, 0});
  RecipeSettings settings = bounded(3600);
  settings.styles.emplace_back().rooms = {folder / "rooms"};
  const OpenedRecipe opened(folder / "s", settings);
  RowMaker maker;
  int corrupt = 0;
  int made = 0;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<MadeField> row;
    const auto done = opened.try_make(maker, 0, epoch, row);
    made += done ? 1 : 0;
    if (done) continue;
    ++corrupt;
    CHECK(done.error().code == ErrorCode::corrupt_record);
    CHECK(done.error().message.find("rooms: sequence 1: an impulse response of 800 taps, all 0") !=
          std::string::npos);
  }
  CHECK(made > 0);
  CHECK(corrupt > 0);
}

TEST_CASE("recipe: a frame of more values than 32 bits count is refused, not wrapped around") {
  const TemporaryFolder folder;
  make_sound_dataset(folder / "s", {{40'000}});
  OpenedRecipe opened(folder / "s");
  RecipeSettings settings = bounded(3600);
  settings.options = {{"mel_bands", "512"}, {"fft_size", "32768"}};
  settings.deltas.order = 3;
  settings.splice = {1024, 1024};
  settings.stacking.stack = 1024;
  const std::string refused = "has more than 4194304; allowed: up to that";
  CHECK(opened.refusal(settings).find(refused) != std::string::npos);
  settings.stacking.stack = 1;
  CHECK(opened.refusal(settings).find(refused) != std::string::npos);
  settings.splice = {1023, 1023};
  CHECK(opened.refusal(settings) == "");
}

TEST_CASE("recipe: what making rows takes follows from the longest sound") {
  const TemporaryFolder folder;
  make_sound_dataset(folder / "s", {{16'000}, {48'000}, {9'000, 8'000}});
  make_sound_dataset(folder / "noise", {{1'000, 8'000}, {3'000, 8'000}});
  make_sound_dataset(folder / "rooms", {{800}});
  RecipeSettings settings = bounded(3600);
  settings.sample_rate = 16'000;
  const OpenedRecipe plain(folder / "s", settings);
  // As stored, and at the feed's rate.
  CHECK(plain.recipe->thread_bytes(*plain.snapshot) == 4 * (48'000 + 48'000));
  CHECK(plain.recipe->kept_bytes() == 0);
  settings.speeds = {*parse_speed(0.5), *parse_speed(1.0)};
  settings.styles.resize(2);
  settings.styles[0].noise = {folder / "noise"};
  settings.styles[1].noise = {folder / "noise"};
  settings.styles[1].rooms = {folder / "rooms"};
  const OpenedRecipe all(folder / "s", settings);
  // The slowest is twice as long, and so is its noise; the longest noise as stored.
  CHECK(all.recipe->thread_bytes(*all.snapshot) == 4 * (48'000 + 2 * 96'000 + 3'000));
  // Noise at the feed's rate, once for both styles; the room, and its spectrum.
  CHECK(all.recipe->kept_bytes() == 4 * (2'000 + 6'000) + 800 * (16 + 4));
  const OpenedRecipe stored(folder / "s", [] {
    RecipeSettings none = bounded(3600);
    none.sample_rate = 16'000;
    none.like.clear();
    return none;
  }());
  CHECK(stored.recipe->thread_bytes(*stored.snapshot) == 4 * (48'000 + 48'000));
}

TEST_CASE("recipe: noise that is larger than what is kept is made once, and so is a second one") {
  const TemporaryFolder folder;
  // 16 samples of each: 70 MiB, of which 128 have no room for two.
  constexpr std::size_t kSamples = 1'150'000;
  make_even_dataset(folder / "noise", {kSamples, kSamples, 100}, 1'000, {900, -900, 30});
  Catalog catalog;
  const auto set = SoundSet::open({folder / "noise"}, {16'000, 3600, false}, catalog);
  REQUIRE_MESSAGE(set, set.error().message);
  CHECK((*set)->kept_bytes() == 2 * 4 * 16 * kSamples + 4 * 16 * 100);
  SoundSet::Scratch scratch;
  std::vector<float> sound;
  for (const std::uint32_t index : {0U, 1U, 2U}) {
    REQUIRE((*set)->read(index, 500'000 * (index < 2 ? 1 : 0), 10, sound, scratch));
  }
  // From now on nothing can be read.
  std::filesystem::resize_file(folder / "noise" / "data.mdb", 0);
  for (const std::uint32_t index : {0U, 1U, 0U, 2U, 1U}) {
    CHECK((*set)->read(index, 500'000 * (index < 2 ? 1 : 0), 10, sound, scratch));
    if (index < 2) CHECK(std::abs(sound[0]) == doctest::Approx(900.0 / 32768).epsilon(0.01));
  }
}

TEST_CASE("recipe: rows say what was drawn for them, as it was") {
  const TemporaryFolder folder;
  make_sound_dataset(folder / "s", {{4000}, {5000}, {6000}});
  make_sound_dataset(folder / "noise", {{9000}});
  make_sound_dataset(folder / "rooms", {{800}, {700}});
  RecipeSettings settings = bounded(3600);
  settings.speeds = {*parse_speed(0.9), *parse_speed(1.1)};
  settings.styles.resize(2);
  settings.styles[1].noise = {folder / "noise"};
  settings.styles[1].noise_draw.probability = 0.5;
  settings.styles[1].rooms = {folder / "rooms"};
  settings.styles[1].reverberation.probability = 0.5;
  const OpenedRecipe silent(folder / "s", settings);
  settings.drawn = {DrawnField::speed, DrawnField::style, DrawnField::snr_db, DrawnField::room};
  const OpenedRecipe opened(folder / "s", settings);
  const Schema& schema = opened.recipe->schema();
  const std::size_t first = silent.recipe->schema().fields.size();
  REQUIRE(schema.fields.size() == first + 4);
  CHECK(schema.fields[first] == FieldSpec{"speed", FieldKind::scalar, DType::float32, {}, {}});
  CHECK(schema.fields[first + 1] == FieldSpec{"style", FieldKind::scalar, DType::int32, {}, {}});
  const auto number = [&](const MadeField& field, auto value) {
    REQUIRE(field.bytes.size() == sizeof value);
    std::memcpy(&value, field.bytes.data(), sizeof value);
    return value;
  };
  RowMaker maker;
  std::size_t with_noise = 0;
  std::size_t with_room = 0;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    for (std::uint64_t i = 0; i < 3; ++i) {
      const auto row = opened.make(maker, i, epoch);
      const RowDraws& draws = maker.draws();
      const float speed = number(row[first], 0.0F);
      CHECK((speed == 0.9F || speed == 1.1F));
      // Slower sound is longer.
      CHECK((speed < 1) == (maker.sound().size() > maker.stored_sound().size()));
      CHECK(number(row[first + 1], std::int32_t{}) == static_cast<std::int32_t>(draws.style));
      const float ratio = number(row[first + 2], 0.0F);
      CHECK(std::isinf(ratio) == !draws.mix.added);
      if (draws.mix.added) CHECK(ratio == static_cast<float>(draws.noise.snr_db));
      const std::int32_t room = number(row[first + 3], std::int32_t{});
      CHECK(room == (draws.room.applies ? static_cast<std::int32_t>(draws.room.room) : -1));
      with_noise += draws.mix.added ? 1 : 0;
      with_room += room >= 0 ? 1 : 0;
      // All else is as without them.
      RowMaker plain;
      CHECK(silent.make(plain, i, epoch)[0].bytes == row[0].bytes);
    }
  }
  CHECK(with_noise > 0);
  CHECK(with_room > 0);
  CHECK(recipe_text(settings).find("features.drawn = speed,style,snr_db,room\n") !=
        std::string::npos);
}

TEST_CASE("recipe: drawn fields that say nothing, or twice the same, are refused") {
  RecipeSettings settings = bounded(3600);
  settings.drawn = {DrawnField::style};
  CHECK(check_recipe(settings).error().message ==
        "drawn: \"style\", and nothing of that is drawn; allowed: with [[feed.style]]");
  settings.drawn = {DrawnField::speed};
  CHECK(check_recipe(settings).error().message ==
        "drawn: \"speed\", and nothing of that is drawn; allowed: with speeds");
  settings.speeds = {*parse_speed(0.9), *parse_speed(1.1)};
  CHECK(check_recipe(settings));
  settings.drawn = {DrawnField::speed, DrawnField::speed};
  CHECK(check_recipe(settings).error().message == "drawn: \"speed\" twice; allowed: once");
}
