#include "storage/features/recipe/recipe.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "tests/storage/recipe/sound_dataset.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

RecipeSettings kaldi_recipe() {
  RecipeSettings settings;
  settings.like = "kaldi";
  return settings;
}

RecipeSettings with_speeds() {
  RecipeSettings settings = kaldi_recipe();
  for (const double factor : {0.9, 1.0, 1.1}) settings.speeds.push_back(*parse_speed(factor));
  return settings;
}

FrontEnd kaldi_front_end(std::uint32_t rate = 16'000) {
  auto made = FrontEnd::create(*front_end_like("kaldi", FeatureKind::logmel), rate);
  REQUIRE(made);
  return *std::move(made);
}

/// Every step at once.
RecipeSettings everything(const std::filesystem::path& noise, const std::filesystem::path& rooms) {
  RecipeSettings settings = with_speeds();
  StyleSettings loud;
  loud.noise = {noise};
  loud.rooms = {rooms};
  loud.gain = {-6, 6};
  loud.telephone.probability = 0.5;
  StyleSettings clean;
  clean.weight = 0.5;
  settings.styles = {loud, clean};
  settings.dither = 1;
  settings.aligned = {"labels"};
  settings.cmvn = true;
  settings.normalise.options.kind = CmvnKind::utterance;
  settings.spec_augment = true;
  settings.masks.time_width = 10;
  settings.masks.time_warp = 5;
  settings.deltas.order = 1;
  settings.splice = {1, 1};
  settings.stacking = {4, 3, StackAlign::right, StackEnd::repeat, 0};
  settings.delay = {5, true};
  return settings;
}

}  // namespace

TEST_CASE("recipe: features are those of the front end, and as many frames as it says") {
  const TemporaryFolder folder;
  make_sound_dataset(folder.path() / "s", {{4000}, {399}, {16'000}, {1}});
  const OpenedRecipe opened(folder.path() / "s", kaldi_recipe());
  const FrontEnd front_end = kaldi_front_end();
  const auto lengths = opened.recipe->lengths(*opened.snapshot, Epoch{0});
  REQUIRE(lengths);
  // Too short for any frame: left out of plans.
  CHECK(**lengths == std::vector<std::uint32_t>{23, 0, 98, 0});
  CHECK(opened.features(0) == front_end.compute(made_sound(0, 4000)));
  CHECK(opened.features(2) == front_end.compute(made_sound(2, 16'000)));
  CHECK(opened.features(1).empty());
  const Schema& schema = opened.recipe->schema();
  REQUIRE(schema.fields.size() == 3);
  CHECK(schema.fields[0] == FieldSpec{"features", FieldKind::primary, DType::float32, {80}, {}});
  CHECK(schema.fields[1].name == "labels");
  CHECK(schema.fields[2].name == "speaker");
  // Without anything at random all epochs share their lengths.
  CHECK(*opened.recipe->lengths(*opened.snapshot, Epoch{1}) == *lengths);
}

TEST_CASE("recipe: every row is as long as was planned, in every epoch and with every step") {
  const TemporaryFolder folder;
  std::vector<MadeSound> sounds;
  for (std::uint32_t i = 0; i < 24; ++i) {
    const std::uint32_t rate = i % 3 == 0 ? 8'000 : 16'000;
    const std::size_t samples = 700 + 977 * i;
    const auto frames = static_cast<std::uint32_t>((samples * 16'000 / rate - 400) / 160 + 1);
    sounds.push_back({samples, rate, frames, 0});
  }
  make_sound_dataset(folder.path() / "s", sounds);
  make_sound_dataset(folder.path() / "noise", {{3000}, {90'000}, {10'000, 8'000}});
  make_sound_dataset(folder.path() / "rooms", {{800}, {400, 8'000}});
  RecipeSettings settings = everything(folder.path() / "noise", folder.path() / "rooms");
  settings.sample_rate = 16'000;
  const OpenedRecipe opened(folder.path() / "s", settings);
  const auto possible = opened.recipe->possible_lengths(*opened.snapshot);
  REQUIRE(possible);
  CHECK(possible->size() == 3);
  const std::size_t labels = *opened.recipe->schema().find("labels");
  CHECK(opened.recipe->schema().fields[labels].kind == FieldKind::aligned);
  CHECK(opened.recipe->schema().fields[0].shape == std::vector<std::uint32_t>{80 * 2 * 3 * 4});
  RowMaker maker;
  std::set<std::vector<std::uint32_t>> seen;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const auto lengths = opened.recipe->lengths(*opened.snapshot, Epoch{epoch});
    REQUIRE(lengths);
    seen.insert(**lengths);
    for (std::uint64_t i = 0; i < sounds.size(); ++i) {
      const auto row = opened.make(maker, i, epoch);
      CHECK(row[0].length == (**lengths)[i]);
      CHECK(row[labels].length == (**lengths)[i]);
      CHECK(row[0].bytes.size() == std::size_t{row[0].length} * 80 * 2 * 3 * 4 * sizeof(float));
      CHECK(std::any_of(possible->begin(), possible->end(),
                        [&](const SharedLengths& each) { return (*each)[i] == row[0].length; }));
    }
  }
  CHECK(seen.size() == 3);
}

TEST_CASE("recipe: a row depends on its sound and key, and on nothing that was made before") {
  const TemporaryFolder folder;
  make_sound_dataset(
      folder.path() / "s",
      {{4000, 16'000, 23, 0}, {9000, 16'000, 54, 0}, {12'000, 16'000, 73, 0}, {700, 16'000, 2, 0}});
  make_sound_dataset(folder.path() / "noise", {{3000}, {90'000}, {10'000, 8'000}});
  make_sound_dataset(folder.path() / "rooms", {{800}, {400, 8'000}});
  const RecipeSettings settings = everything(folder.path() / "noise", folder.path() / "rooms");
  const OpenedRecipe opened(folder.path() / "s", settings);
  const OpenedRecipe again(folder.path() / "s", settings);
  RowMaker used;
  for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
    for (const std::uint64_t ordinal : {3U, 1U, 0U, 2U, 1U, 3U}) {
      RowMaker fresh;
      const auto wanted = again.make(fresh, ordinal, epoch);
      const auto found = opened.make(used, ordinal, epoch);
      REQUIRE(found.size() == wanted.size());
      for (std::size_t f = 0; f < found.size(); ++f) CHECK(found[f].bytes == wanted[f].bytes);
    }
  }
  // Another seed, epoch or ordinal is another row.
  const OpenedRecipe other(folder.path() / "s", settings, 8);
  CHECK(other.features(1, 0) != opened.features(1, 0));
  CHECK(opened.features(1, 1) != opened.features(1, 0));
}

TEST_CASE("recipe: a style's steps are done in their order, with what was drawn") {
  const TemporaryFolder folder;
  make_sound_dataset(folder.path() / "s", {{16'000}});
  make_sound_dataset(folder.path() / "noise", {{3000}, {90'000}});
  make_sound_dataset(folder.path() / "rooms", {{800}});
  RecipeSettings settings = kaldi_recipe();
  StyleSettings style;
  style.noise = {folder.path() / "noise"};
  style.rooms = {folder.path() / "rooms"};
  style.gain = {-6, 6};
  settings.styles = {style};
  const OpenedRecipe opened(folder.path() / "s", settings);
  RowMaker maker;
  const auto row = opened.make(maker, 0, 4);
  const RowDraws& draws = maker.draws();
  CHECK(draws.room.applies);
  CHECK(draws.noise.applies);
  CHECK(draws.mix.added);
  std::vector<float> sound = made_sound(0, 16'000);
  Reverberation reverberation;
  reverberation.apply(*Room::create(made_sound(0, 800)), true, sound);
  const auto noise = made_sound(draws.noise.source, draws.noise.source == 0 ? 3000 : 90'000);
  add_noise(noise, draws.noise_offset, draws.noise.snr_db, sound);
  apply_gain(draws.gain_db, sound);
  CHECK(std::vector<float>(maker.sound().begin(), maker.sound().end()) == sound);
  const auto wanted = kaldi_front_end().compute(sound);
  CHECK(std::memcmp(row[0].bytes.data(), wanted.data(), row[0].bytes.size()) == 0);
  // Each step has taken time that is told once.
  const auto seconds = maker.take_seconds();
  CHECK(seconds[static_cast<std::size_t>(RecipeStep::features)] > 0);
  CHECK(maker.take_seconds() == std::array<double, kRecipeSteps>{});
}

TEST_CASE("recipe: rows of sound have the stored bits where nothing changes them") {
  const TemporaryFolder folder;
  make_sound_dataset(folder.path() / "s", {{1000}, {2000}});
  RecipeSettings settings;
  settings.sound = DType::int16;
  const OpenedRecipe opened(folder.path() / "s", settings);
  CHECK(opened.recipe->schema().fields[0] ==
        FieldSpec{"audio", FieldKind::primary, DType::int16, {}, {}});
  RowMaker maker;
  const auto row = opened.make(maker, 1);
  CHECK(row[0].length == 2000);
  for (std::size_t n = 0; n < 2000; ++n) {
    std::int16_t sample = 0;
    std::memcpy(&sample, row[0].bytes.data() + n * sizeof sample, sizeof sample);
    if (sample != made_sample(1, n)) FAIL_CHECK(n);
  }
  CHECK(maker.draws().saturated == 0);
}

TEST_CASE("recipe: steps of frames work on stored features") {
  const TemporaryFolder folder;
  make_small_dataset(folder.path() / "f", {7, 3, 1});
  RecipeSettings settings;
  settings.cmvn = true;
  settings.normalise.options.kind = CmvnKind::utterance;
  settings.normalise.options.variance = false;
  settings.stacking = {2, 2, StackAlign::right, StackEnd::drop, 0};
  const OpenedRecipe opened(folder.path() / "f", settings);
  CHECK(**opened.recipe->lengths(*opened.snapshot, Epoch{5}) ==
        std::vector<std::uint32_t>{3, 1, 0});
  CHECK(opened.recipe->schema().fields[0].shape == std::vector<std::uint32_t>{8});
  // Frames 0, 1, 2 of sequence 1 differ by 4 in each dimension.
  CHECK(opened.features(1) == std::vector<float>{-4, -4, -4, -4, 0, 0, 0, 0});
}

TEST_CASE("recipe: labels go along, and those of another length are told from few more or fewer") {
  const TemporaryFolder folder;
  make_sound_dataset(folder.path() / "s", {{4000, 16'000, 25, 0}, {4000, 16'000, 26, 0}});
  RecipeSettings settings = kaldi_recipe();
  settings.aligned = {"labels"};
  settings.delay = {2, true};
  const OpenedRecipe opened(folder.path() / "s", settings);
  const auto labels = opened.labels(0);
  REQUIRE(labels.size() == 25);
  CHECK(labels[0] == -100);
  CHECK(labels[1] == -100);
  CHECK(labels[2] == 0);
  CHECK(labels[24] == 22);
  CHECK(opened.recipe->real_frames(0, 25) == 23);
  CHECK(opened.recipe->real_frames(1, 3) == 2);
  CHECK(opened.recipe->real_frames(5, 4) == 4);
  RowMaker maker;
  std::vector<MadeField> row;
  const auto refused = opened.try_make(maker, 1, 0, row);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::corrupt_record);
  CHECK(refused.error().message ==
        "field \"labels\": an aligned field of 26 values for 23 frames; allowed: up to 2 more or "
        "fewer (label_slack)");
}

TEST_CASE("recipe: statistics that are damaged, or another file, are refused by line") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "cmvn";
  const auto refused = [&](const std::string& text) {
    std::ofstream(path) << text;
    const auto read = read_statistics(path);
    return read ? "" : read.error().message.substr(path.string().size());
  };
  const std::string head = "batchwright-cmvn 1\n";
  const std::string rest = "; allowed: what `batchwright cmvn` wrote";
  CHECK(refused(head + "with a = b\nall 2 1 0.5 1e-3\nspeaker x 1 1 0.5 2") == "");
  for (const char* text :
       {"", "\n", "batchwright-cmvn", "batchwright-cmvn 12\n", "RIFF\nall 1 1 0 0\n"}) {
    INFO(text);
    CHECK(refused(text) == ":1: not statistics for CMVN" + rest);
  }
  for (const char* sums :
       {"", "2", "2 1", "2 1 0.5", "2 1 0.5 1 1", "2 1 0.5 one", "2 1 0,5 1", "2 1 nan 1",
        "2 1 0.5 inf", "2 1 0.5 1e999", "2 1 0.5 -1", "0 1 0.5 1", "-2 1 0.5 1",
        "2 99999999999999999999 0.5 1", "2 9223372036854775808 0.5 1"}) {
    INFO(sums);
    CHECK(refused(head + "all " + sums + "\n") == ":2: damaged sums" + rest);
    CHECK(refused(head + "all 2 1 0.5 1\nspeaker x " + sums + "\n") ==
          ":3: damaged sums of speaker x" + rest);
  }
  CHECK(refused(head + "all 2 1 0.5 1\nother\n") == ":3: found \"other\"" + rest);
  CHECK(refused(head + "all 2 1 0.5 1\nspeaker\n") == ":3: found \"speaker\"" + rest);
  CHECK(refused(head + "\n") == ":2: found \"\"" + rest);
  CHECK(refused(head) == ":1: no line \"all\"" + rest);
  std::ofstream(path) << "RIFF";
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);  // more than memory has room for
  CHECK(read_statistics(path).error().message.ends_with(":1: not statistics for CMVN" + rest));
  CHECK(read_statistics(folder.path() / "none").error().message ==
        (folder.path() / "none").string() + ":0: cannot be read" + rest);
}

TEST_CASE("recipe: statistics, of all and of speakers") {
  const TemporaryFolder folder;
  make_sound_dataset(folder.path() / "s", {{4000, 16'000, 0, 3}, {4000, 16'000, 0, 4}});
  const OpenedRecipe plain(folder.path() / "s", kaldi_recipe());
  CmvnStatistics statistics;
  statistics.made_by = plain.recipe->made_by();
  statistics.all = CmvnSums(80);
  statistics.all.add(plain.features(0));
  statistics.all.add(plain.features(1));
  CmvnSums one(80);
  one.add(plain.features(0));
  statistics.speakers.emplace("3", one);
  REQUIRE(write_statistics(folder.path() / "cmvn", statistics));
  const auto read = read_statistics(folder.path() / "cmvn");
  REQUIRE_MESSAGE(read, read.error().message);
  CHECK(read->made_by == statistics.made_by);
  CHECK(read->all.sums == statistics.all.sums);
  CHECK(read->all.squares == statistics.all.squares);
  CHECK(read->speakers.at("3").sums == one.sums);

  RecipeSettings settings = kaldi_recipe();
  settings.cmvn = true;
  settings.normalise.options.kind = CmvnKind::global;
  settings.normalise.statistics = folder.path() / "cmvn";
  const OpenedRecipe global(folder.path() / "s", settings);
  auto wanted = plain.features(1);
  CmvnScratch scratch;
  normalise_by(statistics.all, true, wanted, scratch);
  CHECK(global.features(1) == wanted);

  settings.normalise.options.kind = CmvnKind::speaker;
  settings.normalise.speaker = "speaker";
  const OpenedRecipe speaker(folder.path() / "s", settings);
  wanted = plain.features(0);
  normalise_by(one, true, wanted, scratch);
  CHECK(speaker.features(0) == wanted);
  RowMaker maker;
  std::vector<MadeField> row;
  const auto unknown = speaker.try_make(maker, 1, 0, row);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().message.starts_with("speaker 4 has no statistics in "));

  settings.options = {{"mel_bands", "40"}};
  OpenedRecipe other(folder.path() / "s");
  CHECK(other.refusal(settings).find("made with other settings: mel_bands = 40 here, mel_bands = "
                                     "80 there") != std::string::npos);
}

TEST_CASE("recipe: refused by name") {
  const TemporaryFolder folder;
  make_sound_dataset(folder.path() / "two", {{4000}, {4000, 8'000}});
  make_sound_dataset(folder.path() / "one", {{4000}});
  make_sound_dataset(folder.path() / "silent", {{4000}, {4000}}, true);
  make_sound_dataset(folder.path() / "empty", {});
  make_small_dataset(folder.path() / "features", {7, 3, 1});
  OpenedRecipe two(folder.path() / "two");
  OpenedRecipe one(folder.path() / "one");
  OpenedRecipe features(folder.path() / "features");
  const auto says = [](const std::string& refusal, const std::string& what) {
    CHECK_MESSAGE(refusal.find(what) != std::string::npos, refusal);
  };
  says(two.refusal(kaldi_recipe()), "sample_rate: none, and sequences of 8000 and of 16000 Hz");
  RecipeSettings settings = kaldi_recipe();
  settings.options = {{"fmax_hz", "9000"}};
  says(one.refusal(settings), "fmax 9000 Hz; at 16000 Hz allowed: up to 8000 Hz");
  settings.options = {{"mel_bands", "400"}};
  says(one.refusal(settings), "band");
  settings = kaldi_recipe();
  settings.styles.emplace_back().noise = {folder.path() / "silent"};
  says(one.refusal(settings), "silent: every sequence is silent");
  settings.styles[0].noise = {folder.path() / "empty"};
  says(one.refusal(settings), "empty: a dataset without sequences");
  settings.styles[0].noise = {folder.path() / "features"};
  says(one.refusal(settings), "features: a dataset without sound");
  settings.styles[0].noise = {folder.path() / "nothing"};
  says(one.refusal(settings), "nothing");
  settings.styles[0].noise.clear();
  settings.styles[0].noise_draw.snr_low_db = 30;
  says(one.refusal(settings), "snr_db from 30 to 20 dB");
  settings.styles[0] = {};
  settings.styles[0].weight = 0;
  says(one.refusal(settings), "weight 0 of the only style");
  says(features.refusal(kaldi_recipe()), "steps need sound, and the dataset has none");
  RecipeSettings frames;
  frames.deltas.order = 1;
  says(one.refusal(frames), "steps for frames of features, and none are made");
  frames.keep.of = 2;
  frames.stacking.stack = 2;
  says(one.refusal(frames), "stack, stride and keep_one_of; allowed: one of the two");
  settings = kaldi_recipe();
  settings.aligned = {"speaker"};
  says(one.refusal(settings), "aligned: field \"speaker\"; allowed: an independent field");
  settings.aligned = {"nothing"};
  says(one.refusal(settings), "aligned: ");
  settings = kaldi_recipe();
  settings.cmvn = true;
  says(one.refusal(settings), "cmvn global or speaker without cmvn_statistics");
  settings.normalise.statistics = folder.path() / "no-such-file";
  says(one.refusal(settings), "no-such-file:0: cannot be read");
}

TEST_CASE("recipe: the text of a recipe has what it reads, too") {
  const TemporaryFolder folder;
  make_sound_dataset(folder.path() / "s", {{4000}});
  make_sound_dataset(folder.path() / "noise", {{4000}});
  RecipeSettings settings = kaldi_recipe();
  settings.styles.emplace_back().noise = {folder.path() / "noise"};
  const std::string before = OpenedRecipe(folder.path() / "s", settings).recipe->text();
  CHECK(before == OpenedRecipe(folder.path() / "s", settings).recipe->text());
  std::filesystem::remove_all(folder.path() / "noise");
  make_sound_dataset(folder.path() / "noise", {{4001}});
  CHECK(before != OpenedRecipe(folder.path() / "s", settings).recipe->text());
}
