#include "tests/storage/frontend/golden.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "storage/features/frontend/front_end.h"

// Every convention against what its own program gives: tests/data/frontend/README.md.

using namespace batchwright;
using namespace batchwright::test;

namespace {

FrontEndOptions like(std::string_view name, FeatureKind features = FeatureKind::logmel) {
  const auto options = front_end_like(name, features);
  REQUIRE(options);
  return *options;
}

/// librosa's and torchaudio's with frames of 400 samples in 512 points, and plain logarithms.
FrontEndOptions with_logarithms(FrontEndOptions options, std::uint32_t window) {
  options.window_samples = window;
  options.hop_samples = 160;
  options.fft_size = 512;
  options.mel_bands = 80;
  options.log = LogKind::floor;
  options.log_floor = 1e-10;
  return options;
}

FrontEndOptions settings_of(std::string name) {
  if (const auto first = name.find("-first"); first != name.npos) name.resize(first);
  const FeatureKind mfcc = FeatureKind::mfcc;
  FrontEndOptions options;
  if (name == "htk-logmel40") options.log_floor = 0x1p-23;
  if (name.starts_with("kaldi-fbank")) options = like("kaldi");
  if (name == "kaldi-fbank80-reflect") {
    options.start = FrameStart::window_centre;
    options.count = CountRule::rounded;
  }
  if (name == "kaldi-fbank80-lhotse") options = like("kaldi-lhotse");
  if (name == "kaldi-fbank40-energy") {
    options.mel_bands = 40;
    options.use_energy = true;
  }
  if (name == "kaldi-mfcc13") options = like("kaldi", mfcc);
  if (name == "kaldi-plp13") options = like("kaldi", FeatureKind::plp);
  if (name == "kaldi-mfcc40") options = like("kaldi-hires");
  if (name.starts_with("whisper")) options = like("whisper");
  if (name == "whisper128") options.mel_bands = 128;
  if (name == "whisper80-pad30") options.pad_to = 480000;
  if (name.starts_with("nemo")) options = like("nemo");
  if (name == "nemo80-raw") options.normalise = Normalise::none;
  if (name == "librosa-db128") options = like("librosa");
  if (name == "librosa-mfcc20") options = like("librosa", mfcc);
  if (name == "librosa-ln80") options = with_logarithms(like("librosa"), 400);
  if (name == "torchaudio-ln80") options = with_logarithms(like("torchaudio"), 512);
  if (name == "torchaudio-mfcc40") {
    options = with_logarithms(like("torchaudio", mfcc), 512);
    options.log = LogKind::db;
  }
  if (name == "tacotron2" || name == "hifigan") options = like(name);
  if (name == "variani512") options = like("variani");
  return options;
}

std::vector<float> features_of(const std::string& name, const std::string& clip,
                               const std::vector<float>& samples) {
  const auto front_end = FrontEnd::create(settings_of(name), rate_of(clip));
  REQUIRE_MESSAGE(front_end, front_end.error().message);
  return front_end->compute(samples);
}

}  // namespace

TEST_CASE("frontend: every convention gives what its own program gives") {
  for (const auto& line : lines_of("manifest.tsv")) {
    const std::string& name = line[0];
    const std::string& clip = line[1];
    CAPTURE(name);
    CAPTURE(clip);
    const auto features = features_of(name, clip, sound_of(clip));
    CHECK(features.size() == std::stoul(line[2]) * std::stoul(line[3]));
    const auto [least, most] = std::minmax_element(features.begin(), features.end());
    double sum = 0;
    for (const float value : features) sum += static_cast<double>(value);
    CHECK(apart(static_cast<double>(*least), std::stod(line[4])) < 1e-5);
    CHECK(apart(static_cast<double>(*most), std::stod(line[5])) < 1e-5);
    CHECK(apart(sum / static_cast<double>(features.size()), std::stod(line[6])) < 1e-5);
    if (line[11] != "-") CHECK(farthest(features, array_of<float>(line[11])) < 1e-5);
  }
}

TEST_CASE("frontend: single values of other clips and of short sound are those programs', too") {
  std::map<std::pair<std::string, std::string>, std::vector<float>> known;
  for (const auto& line : lines_of("grid.tsv")) {
    const std::string& name = line[0];
    CAPTURE(name);
    CAPTURE(line[1]);
    auto [found, is_new] = known.try_emplace({name, line[1]});
    if (is_new) {
      std::vector<float> samples = sound_of(line[1]);
      // "-first240": so many samples.
      if (const auto first = name.find("-first"); first != name.npos) {
        samples.resize(std::stoul(name.substr(first + 6)));
      }
      found->second = features_of(name, line[1], samples);
    }
    const auto front_end = FrontEnd::create(settings_of(name), rate_of(line[1]));
    const std::size_t place = std::stoul(line[2]) * front_end->dimensions() + std::stoul(line[3]);
    REQUIRE(place < found->second.size());
    // The table has seven digits.
    CHECK(apart(static_cast<double>(found->second[place]), std::stod(line[4])) < 1.1e-5);
  }
}

TEST_CASE("frontend: Variani's frames stacked by four, each third, are the paper's input") {
  const auto features = features_of("variani512", "goodbye-16k", sound_of("goodbye-16k"));
  const auto golden = array_of<float>("variani512.goodbye-16k.npy");
  const std::size_t frames = features.size() / 128;
  REQUIRE(golden.size() == (frames + 2) / 3 * 512);
  double most = 0;
  for (std::size_t i = 0; i < golden.size(); ++i) {
    const std::size_t frame = std::min(i / 512 * 3 + i % 512 / 128, frames - 1);
    most = std::max(most, apart(static_cast<double>(features[frame * 128 + i % 128]),
                                static_cast<double>(golden[i])));
  }
  CHECK(most < 1e-5);
}

TEST_CASE("frontend: frames are counted as each program counts them") {
  const FrontEndOptions librosa = settings_of("librosa-ln80");
  const FrontEndOptions torchaudio = settings_of("torchaudio-ln80");
  const std::vector<std::pair<FrontEndOptions, std::uint32_t>> columns = {
      {like("kaldi"), 16000},        {settings_of("kaldi-fbank80-reflect"), 16000},
      {like("kaldi-lhotse"), 16000}, {like("whisper"), 16000},
      {like("nemo"), 16000},         {librosa, 16000},
      {torchaudio, 16000},           {like("tacotron2"), 22050},
      {like("hifigan"), 22050}};
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const auto front_end = FrontEnd::create(columns[c].first, columns[c].second);
    REQUIRE(front_end);
    std::size_t before = 0;
    for (const auto& line : lines_of("frames.tsv")) {
      CAPTURE(columns[c].first.like);
      CAPTURE(line[0]);
      const std::size_t frames = front_end->frames(std::stoul(line[0]));
      // "-": the program refuses sound so short, where the formula goes on.
      if (line[c + 1] != "-") CHECK(frames == std::stoul(line[c + 1]));
      CHECK(frames >= before);
      before = frames;
    }
    CHECK(front_end->frames(0) == 0);
  }
}

TEST_CASE("frontend: any sound, from one sample on, has as many frames as were counted") {
  const auto speech = sound_of("goodbye-16k");
  for (const std::string_view name : front_end_names()) {
    const auto front_end = FrontEnd::create(like(name), 16000);
    REQUIRE_MESSAGE(front_end, front_end.error().message);
    for (const std::size_t samples : std::vector<std::size_t>{
             0, 1, 2, 3, 7, 79, 80, 159, 160, 161, 399, 400, 401, 1023, 1024, 1025, 2047, 4000}) {
      CAPTURE(name);
      CAPTURE(samples);
      const auto features = front_end->compute(std::span(speech).first(samples));
      CHECK(features.size() == front_end->frames(samples) * front_end->dimensions());
      CHECK(std::all_of(features.begin(), features.end(),
                        [](float value) { return std::isfinite(value); }));
    }
  }
}

TEST_CASE("frontend: silence has the values that each convention gives it") {
  const std::map<std::string_view, double> wanted = {{"htk", -23.0258509},
                                                     {"kaldi", -15.9423847},
                                                     {"kaldi-lhotse", -15.9423847},
                                                     {"whisper", -1.5},
                                                     {"nemo", 0},
                                                     {"librosa", -100},
                                                     {"torchaudio", -100},
                                                     {"tacotron2", -11.5129255},
                                                     {"hifigan", -11.5129255}};
  const std::vector<float> silence(8000, 0.0F);
  for (const auto& one : wanted) {
    CAPTURE(one.first);
    const auto features = FrontEnd::create(like(one.first), 16000)->compute(silence);
    REQUIRE_FALSE(features.empty());
    for (const float each : features) CHECK(apart(static_cast<double>(each), one.second) < 1e-6);
  }
}

TEST_CASE("frontend: settings name what differs from htk, and an unknown convention is refused") {
  const auto kaldi = FrontEnd::create(like("kaldi"), 16000)->settings();
  const auto has = [&kaldi](const char* name, const char* value) {
    return std::find(kaldi.begin(), kaldi.end(),
                     std::pair<std::string, std::string>(name, value)) != kaldi.end();
  };
  CHECK(has("like", "kaldi"));
  CHECK(has("window", "povey"));
  CHECK(has("count", "inside"));
  CHECK(has("remove_dc", "true"));
  CHECK_FALSE(has("top_db", "0"));
  const auto none = front_end_like("kladi", FeatureKind::logmel);
  REQUIRE_FALSE(none);
  CHECK(none.error().message ==
        "no convention \"kladi\"; allowed: htk kaldi kaldi-lhotse kaldi-hires whisper nemo librosa "
        "torchaudio tacotron2 hifigan variani");
}
