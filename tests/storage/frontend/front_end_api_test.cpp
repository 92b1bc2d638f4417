#include <batchwright/front_end.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/storage/frontend/golden.h"

// The front end's C ABI, in the shared library.

using namespace batchwright::test;

namespace {

using Handle = std::unique_ptr<bw_front_end, void (*)(bw_front_end*)>;
using Settings = std::vector<bw_setting>;

bw_front_end_options options_of(const char* like, const Settings& settings = {},
                                const char* features = nullptr) {
  bw_front_end_options options = BW_FRONT_END_OPTIONS_INIT;
  options.like = like;
  options.features = features;
  options.settings = settings.data();
  options.setting_count = settings.size();
  options.sample_rate_hz = 16000;
  return options;
}

Handle opened(const bw_front_end_options& options) {
  bw_front_end* front_end = nullptr;
  REQUIRE_MESSAGE(bw_front_end_open(&options, &front_end) == BW_OK,
                  std::string(bw_front_end_error_message()));
  return {front_end, bw_front_end_close};
}

/// The text of an open that is to fail.
std::string refusal_of(const bw_front_end_options& options,
                       bw_status wanted = BW_INVALID_ARGUMENT) {
  auto* front_end = reinterpret_cast<bw_front_end*>(1);
  CHECK(bw_front_end_open(&options, &front_end) == wanted);
  CHECK(front_end == nullptr);
  return bw_front_end_error_message();
}

bool begins(const std::string& text, const std::string& words) { return text.starts_with(words); }

Settings settings_of(const Handle& front_end) {
  Settings all;
  for (std::size_t i = 0; i < bw_front_end_setting_count(front_end.get()); ++i) {
    all.push_back(*bw_front_end_setting_at(front_end.get(), i));
  }
  CHECK(bw_front_end_setting_at(front_end.get(), all.size()) == nullptr);
  return all;
}

bool same(const Settings& a, const Settings& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const bw_setting& one, const bw_setting& other) {
        return std::strcmp(one.name, other.name) == 0 && std::strcmp(one.value, other.value) == 0;
      });
}

template <class Sample>
std::vector<float> computed(const Handle& front_end, const std::vector<Sample>& samples) {
  const bw_sound sound = {samples.data(), samples.size(),
                          sizeof(Sample) == 2 ? BW_INT16 : BW_FLOAT32, 0};
  std::vector<float> features(bw_front_end_frames(front_end.get(), samples.size()) *
                              bw_front_end_values(front_end.get()));
  REQUIRE_MESSAGE(
      bw_front_end_compute(front_end.get(), &sound, features.data(), features.size()) == BW_OK,
      std::string(bw_front_end_error_message()));
  return features;
}

struct Golden {
  std::string file;
  bw_front_end_options options;
};

std::string clip_of(const std::string& file) {
  const std::size_t from = file.find('.') + 1;
  return file.substr(from, file.find(".npy") - from);
}

}  // namespace

TEST_CASE("frontend: in C, features are those of the convention's own program") {
  const Settings energy = {{"mel_bands", "40"}, {"use_energy", "true"}};
  const Settings lhotse = {{"sample_scale", "1"}, {"snip_edges", "false"}, {"fmax", "-400"}};
  const Settings bands = {{"mel_bands", "128"}};
  const Settings raw = {{"normalise", "none"}};
  const Settings plain = {{"window_samples", "400"}, {"hop_samples", "160"},
                          {"fft_size", "512"},       {"mel_bands", "80"},
                          {"log", "floor"},          {"log_floor", "1e-10"}};
  const std::vector<Golden> all = {
      {"kaldi-fbank80.goodbye-16k.npy", options_of("kaldi")},
      {"kaldi-fbank40-energy.goodbye-8k.npy", options_of("kaldi", energy)},
      {"kaldi-fbank80-lhotse.synth-16k.npy", options_of("kaldi", lhotse)},
      {"kaldi-mfcc13.goodbye-8k.npy", options_of("kaldi", {}, "mfcc")},
      {"whisper128.goodbye-16k.npy", options_of("whisper", bands)},
      {"nemo80.synth-16k.npy", options_of("nemo")},
      {"nemo80-raw.goodbye-16k.npy", options_of("nemo", raw)},
      {"librosa-ln80.goodbye-16k.npy", options_of("librosa", plain)},
      {"librosa-mfcc20.goodbye-16k.npy", options_of("librosa", {}, "mfcc")},
      {"tacotron2.goodbye-22k.npy", options_of("tacotron2")},
      {"hifigan.goodbye-22k.npy", options_of("hifigan")}};
  for (const Golden& golden : all) {
    CAPTURE(golden.file);
    const std::string clip = clip_of(golden.file);
    bw_front_end_options options = golden.options;
    options.sample_rate_hz = rate_of(clip);
    const Handle front_end = opened(options);
    const auto features = computed(front_end, array_of<std::int16_t>("audio-" + clip + ".npy"));
    CHECK(farthest(features, array_of<float>(golden.file)) < 1e-5);
    CHECK(computed(front_end, sound_of(clip)) == features);
  }
}

TEST_CASE("frontend: in C, a front end's settings make the same one again") {
  const auto sound = sound_of("synth-16k");
  for (const std::string like : {"htk", "kaldi", "kaldi-lhotse", "kaldi-hires", "whisper", "nemo",
                                 "librosa", "torchaudio", "tacotron2", "hifigan", "variani"}) {
    CAPTURE(like);
    const Handle first =
        opened(options_of(like.c_str(), {{"mel_bands", "40"}, {"pre_emphasis", "0.5"}}));
    const Settings told = settings_of(first);
    bw_front_end_options options = options_of(nullptr, told);
    options.sample_rate_hz = 0;
    const Handle second = opened(options);
    CHECK(same(settings_of(second), told));
    CHECK(computed(second, sound) == computed(first, sound));
  }
}

TEST_CASE("frontend: in C, settings that are not all of a front end's need a convention") {
  const Settings few = {{"like", "kaldi"}, {"sample_rate_hz", "16000"}, {"mel_bands", "80"}};
  CHECK(refusal_of(options_of(nullptr, few)) ==
        "the settings have no features; without a convention, all that a front end tells are "
        "needed");
  CHECK(refusal_of(options_of(nullptr)) == "no convention, and settings without sample_rate_hz");
  const Handle htk = opened(options_of("htk"));
  const Settings whole = settings_of(htk);
  bw_front_end_options other = options_of(nullptr, whole);
  other.sample_rate_hz = 8000;
  CHECK(refusal_of(other) == "a sample rate of 8000 Hz, and settings of 16000 Hz");
  CHECK(refusal_of(options_of(nullptr, whole, "mfcc")) ==
        "features beside the settings that have them");
  CHECK(refusal_of(options_of(nullptr, {{"sample_rate_hz", "16 kHz"}})) ==
        "sample_rate_hz = \"16 kHz\"; allowed: a whole number, 1 or more");
  CHECK(begins(refusal_of(options_of(nullptr, {{"like", "sphinx"}})), "no convention \"sphinx\""));
  CHECK(begins(refusal_of(options_of("kaldi", {{"like", "kaldi"}})), "no option \"like\""));
}

TEST_CASE("frontend: in C, what is no front end is refused by name") {
  CHECK(refusal_of(options_of("kladi")) ==
        "no convention \"kladi\"; allowed: htk kaldi kaldi-lhotse kaldi-hires whisper nemo librosa "
        "torchaudio tacotron2 hifigan variani");
  CHECK(refusal_of(options_of("htk", {}, "pitch")) ==
        "features = \"pitch\"; allowed: logmel, mfcc, plp");
  CHECK(refusal_of(options_of("htk", {}, "plp")) ==
        "features \"plp\" of convention \"htk\"; allowed: like kaldi or kaldi-lhotse");
  CHECK(begins(refusal_of(options_of("htk", {{"mel_bins", "80"}})),
               "no option \"mel_bins\" of a front end; allowed: window_ms hop_ms "));
  CHECK(refusal_of(options_of("htk", {{"mel_bands", "many"}})) ==
        "mel_bands = \"many\"; allowed: a whole number, 0 or more");
  CHECK(refusal_of(options_of("htk", {{"mel_bands", "0"}})) == "0 mel bands; allowed: 1 to 4096");
  CHECK(refusal_of(options_of("htk", {{"mel_bands", nullptr}})) ==
        "a setting has no name or no value");
  bw_front_end_options options = options_of("htk");
  options.sample_rate_hz = 0;
  CHECK(refusal_of(options) == "a sample rate of 0 Hz");
  options = options_of("htk");
  options.reserved = 1;
  CHECK(refusal_of(options) == "reserved is not 0");
  options = options_of("htk");
  options.setting_count = 1;
  CHECK(refusal_of(options) == "settings are counted, but not given");
  CHECK(bw_front_end_open(&options, nullptr) == BW_INVALID_ARGUMENT);
}

TEST_CASE("frontend: in C, options of a newer header are taken while they are zero") {
  struct Newer {
    bw_front_end_options known;
    std::uint64_t unknown;
  } newer = {options_of("kaldi"), 0};
  newer.known.struct_size = sizeof newer;
  opened(newer.known);
  newer.unknown = 1;
  CHECK(begins(refusal_of(newer.known, BW_UNSUPPORTED), "an option is set"));
  newer.known.struct_size = 0;
  CHECK(begins(refusal_of(newer.known), "struct_size is 0"));
}

TEST_CASE("frontend: in C, sound that has no features is refused, and nothing is written") {
  const Handle front_end = opened(options_of("kaldi"));
  const float infinite = std::numeric_limits<float>::infinity();
  std::vector<float> samples(800, 0.25F);
  std::vector<float> features(std::size_t{3} * 80, 7);
  const auto refused = [&](const bw_sound& sound, std::uint64_t room) {
    CHECK(bw_front_end_compute(front_end.get(), &sound, features.data(), room) ==
          BW_INVALID_ARGUMENT);
    CHECK(features == std::vector<float>(features.size(), 7));
    return std::string(bw_front_end_error_message());
  };
  const bw_sound good = {samples.data(), samples.size(), BW_FLOAT32, 0};
  CHECK(refused(good, 239) == "room for 239 values; needed: 3 frames of 80 values");
  samples[799] = infinite;
  CHECK(refused(good, 240) == "sample 799 of 800 is inf; allowed: finite numbers");
  samples[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK(refused(good, 240) == "sample 3 of 800 is nan; allowed: finite numbers");
  CHECK(refused({samples.data(), 800, BW_INT32, 0}, 240) ==
        "samples of dtype 5; allowed: 6 (int16), 1 (float32)");
  CHECK(refused({nullptr, 800, BW_INT16, 0}, 240) == "samples are counted, but not given");
  CHECK(refused({samples.data(), 800, BW_INT16, 1}, 240) == "reserved is not 0");
  const char* const odd = reinterpret_cast<const char*>(samples.data()) + 1;
  CHECK(begins(refused({odd, 700, BW_FLOAT32, 0}, 240), "samples are not aligned"));
  CHECK(bw_front_end_compute(front_end.get(), &good, nullptr, 240) == BW_INVALID_ARGUMENT);
  CHECK(bw_front_end_compute(front_end.get(), nullptr, nullptr, 0) == BW_INVALID_ARGUMENT);
  CHECK(bw_front_end_compute(nullptr, &good, features.data(), 240) == BW_INVALID_ARGUMENT);
}

TEST_CASE("frontend: in C, no samples have no frames, and null is fine where it says so") {
  const Handle front_end = opened(options_of("librosa"));
  const bw_sound none = {nullptr, 0, BW_INT16, 0};
  CHECK(bw_front_end_frames(front_end.get(), 0) == 0);
  CHECK(bw_front_end_compute(front_end.get(), &none, nullptr, 0) == BW_OK);
  CHECK(bw_front_end_values(nullptr) == 0);
  CHECK(bw_front_end_frames(nullptr, 16000) == 0);
  CHECK(bw_front_end_setting_count(nullptr) == 0);
  CHECK(bw_front_end_setting_at(nullptr, 0) == nullptr);
  bw_front_end_close(nullptr);
  CHECK(bw_front_end_abi_version() == BW_FRONT_END_ABI_VERSION);
  CHECK(bw_front_end_status_name(BW_INVALID_ARGUMENT) == std::string("invalid_argument"));
}

TEST_CASE("frontend: in C, threads share a front end and get the same bits") {
  const Handle front_end = opened(options_of("whisper"));
  const auto sound = sound_of("goodbye-16k");
  const auto wanted = computed(front_end, sound);
  std::vector<std::vector<float>> found(4);
  std::vector<std::jthread> threads;
  for (auto& each : found) {
    threads.emplace_back([&] { each = computed(front_end, sound); });
  }
  threads.clear();
  for (const auto& each : found) CHECK(each == wanted);
}
