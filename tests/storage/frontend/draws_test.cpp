#include "storage/features/frontend/augment/draws.h"

#include "storage/features/frontend/augment/noise.h"
#include "storage/features/frontend/augment/spec_augment.h"
#include "storage/features/sound/telephone.h"
#include "tests/storage/frontend/golden.h"

// What is drawn, against augment.json.

using namespace batchwright;
using namespace batchwright::test;
namespace json = boost::json;

namespace {

std::uint64_t number_of(const json::value& value) {
  if (value.is_string()) return std::stoull(std::string(value.as_string()));
  return value.to_number<std::uint64_t>();
}

/// [seed, epoch, ordinal, use]
DrawKey key_of(const json::value& value) {
  const json::array& parts = value.as_array();
  return {number_of(parts[0]), number_of(parts[1]), number_of(parts[2]), number_of(parts[3])};
}

/// A line of numbers; with an identity it is of version 2.
void check_stream(const json::value& line) {
  DrawKey key{number_of(line.at("seed")), number_of(line.at("epoch")),
              number_of(line.at("ordinal")), number_of(line.at("use"))};
  if (const json::value* identity = line.as_object().if_contains("identity")) {
    key.identity = number_of(*identity);
  }
  const auto stage = static_cast<DrawStage>(number_of(line.at("stage")));
  Draws next(key, stage);
  for (const json::value& wanted : line.at("next").as_array()) {
    CHECK(next.next() == number_of(wanted));
  }
  Draws uniform(key, stage);
  for (const json::value& wanted : line.at("uniform").as_array()) {
    CHECK(uniform.uniform() == doctest::Approx(wanted.as_double()).epsilon(1e-14));
  }
  Draws below(key, stage);
  for (const json::value& wanted : line.at("below_100").as_array()) {
    CHECK(below.below(100) == number_of(wanted));
  }
  // Of millions of rows they are found by half the work.
  Draws of_epoch = EpochDraws(key, stage).of(key.ordinal, key.use);
  CHECK(of_epoch.next() == number_of(line.at("next").as_array()[0]));
}

std::vector<Mask> masks_of(const json::value& value) {
  std::vector<Mask> masks;
  for (const json::value& each : value.as_array()) {
    masks.push_back({each.as_array()[0].to_number<std::uint32_t>(),
                     each.as_array()[1].to_number<std::uint32_t>()});
  }
  return masks;
}

}  // namespace

TEST_CASE("draws: the streams of six keys and their stages") {
  const json::object golden = golden_json("augment.json");
  for (const json::value& line : golden.at("streams").as_array()) check_stream(line);
  const json::object& normal = golden.at("normal").as_object();
  const Draws draws(key_of(normal.at("key")), DrawStage::dither);
  std::uint64_t n = 0;
  for (const json::value& wanted : normal.at("values").as_array()) {
    CHECK(draws.normal(n++) == doctest::Approx(wanted.as_double()).epsilon(1e-14));
  }
}

TEST_CASE("draws: the streams of version 2") {
  const json::object golden = golden_json("draws.json");
  REQUIRE(golden.at("streams").as_array().size() == 24);
  for (const json::value& line : golden.at("streams").as_array()) check_stream(line);
}

TEST_CASE("draws: each weight has its share, one of 0 has none") {
  const std::vector<double> weights = {1, 0, 3};
  std::vector<int> seen(3);
  for (std::uint64_t ordinal = 0; ordinal < 4000; ++ordinal) {
    ++seen[Draws({1, 2, ordinal, 0}, DrawStage::style).pick(weights)];
  }
  CHECK(seen[0] > 850);
  CHECK(seen[0] < 1150);
  CHECK(seen[1] == 0);
  CHECK(seen[0] + seen[2] == 4000);
}

TEST_CASE("draws: speeds and offsets are as likely as each other, and none is outside") {
  std::vector<int> speeds(3);
  std::vector<int> offsets(4);
  for (std::uint64_t ordinal = 0; ordinal < 4000; ++ordinal) {
    ++speeds.at(draw_speed({{1, 2, ordinal, 0}, DrawStage::speed}, 3));
    ++offsets.at(draw_keep_offset({{1, 2, ordinal, 0}, DrawStage::keep_one_of}, 4));
  }
  for (const int count : speeds) CHECK(std::abs(count - 1333) < 150);
  for (const int count : offsets) CHECK(std::abs(count - 1000) < 150);
}

TEST_CASE("draws: SpecAugment's masks and warps") {
  const json::object golden = golden_json("augment.json");
  SpecAugmentDraw draw;
  for (const json::value& line : golden.at("spec_masks").as_array()) {
    SpecAugmentOptions options;
    options.time_masks = line.at("time_masks").to_number<std::uint32_t>();
    options.time_width = line.at("time_width").to_number<std::uint32_t>();
    options.time_share = line.at("time_share").to_number<double>();
    options.freq_masks = line.at("freq_masks").to_number<std::uint32_t>();
    options.freq_width = line.at("freq_width").to_number<std::uint32_t>();
    draw_spec_augment(key_of(line.at("key")), options, line.at("frames").to_number<std::uint32_t>(),
                      line.at("bands").to_number<std::uint32_t>(), draw);
    CHECK(draw.applies);
    CHECK_FALSE(draw.warp);
    CHECK(draw.time == masks_of(line.at("time")));
    CHECK(draw.bands == masks_of(line.at("freq")));
  }
  for (const json::value& line : golden.at("time_warp").as_array()) {
    SpecAugmentOptions options;
    options.time_warp = line.at("warp").to_number<std::uint32_t>();
    options.time_masks = 0;
    options.freq_masks = 0;
    auto values = array_of<float>("kaldi-fbank80-lhotse.goodbye-16k.npy");
    const auto frames = static_cast<std::uint32_t>(values.size() / 80);
    draw_spec_augment(key_of(line.at("key")), options, frames, 80, draw);
    REQUIRE(draw.warp);
    CHECK(draw.warp->centre == line.at("centre").to_number<std::uint32_t>());
    CHECK(draw.warp->moved_to == line.at("moved_to").to_number<std::uint32_t>());
    std::vector<float> scratch;
    apply_spec_augment(draw, options, 80, values, scratch);
    for (const json::value& at : line.at("at").as_array()) {
      const auto place = number_of(at.as_array()[0]) * 80 + number_of(at.as_array()[1]);
      CHECK(apart(static_cast<double>(values.at(place)), at.as_array()[2].as_double()) < 1e-6);
    }
  }
}

TEST_CASE("draws: adaptive masks are as many and as wide as their shares of the frames") {
  SpecAugmentOptions options;
  options.adaptive_masks = 0.04;
  options.adaptive_width = 0.04;
  SpecAugmentDraw draw;
  for (const std::uint32_t frames : {0U, 1U, 24U, 25U, 100U, 499U, 500U, 10'000U}) {
    draw_spec_augment({1, 1, frames, 0}, options, frames, 80, draw);
    CHECK(draw.time.size() == std::min(20U, frames * 4 / 100));
    for (const Mask& mask : draw.time) CHECK(mask.width <= frames * 4 / 100);
  }
}

TEST_CASE("SpecAugment: masked values are 0, a number, or the mean before any mask") {
  SpecAugmentDraw draw;
  draw.applies = true;
  draw.time = {{1, 1}};
  draw.bands = {{0, 1}};
  std::vector<float> scratch;
  const auto masked = [&](SpecAugmentOptions options) {
    std::vector<float> values = {1, 2, 3, 4, 5, 9};
    apply_spec_augment(draw, options, 2, values, scratch);
    return values;
  };
  CHECK(masked({}) == std::vector<float>{0, 2, 0, 0, 0, 9});
  SpecAugmentOptions options;
  options.mask_value = -4;
  CHECK(masked(options) == std::vector<float>{-4, 2, -4, -4, -4, 9});
  options = {};
  options.mean = true;
  CHECK(masked(options) == std::vector<float>{4, 2, 4, 4, 4, 9});
}

TEST_CASE("draws: noise, where it begins, and what adding it gives") {
  const json::object golden = golden_json("augment.json");
  for (const json::value& line : golden.at("noise").as_array()) {
    NoiseOptions options;
    options.snr_low_db = line.at("snr_range").as_array()[0].to_number<double>();
    options.snr_high_db = line.at("snr_range").as_array()[1].to_number<double>();
    auto sound = sound_of(std::string(line.at("speech").as_string()));
    const auto noise = sound_of(std::string(line.at("noise").as_string()));
    Draws draws(key_of(line.at("key")), DrawStage::noise);
    const NoiseDraw draw = draw_noise(draws, options, 1);
    CHECK(draw.applies);
    CHECK(draw.source == number_of(line.at("source")));
    CHECK(draw.snr_db == doctest::Approx(line.at("snr_db").as_double()).epsilon(1e-14));
    const auto offset = draw_offset(draws, noise.size(), sound.size());
    CHECK(offset == number_of(line.at("offset")));
    const NoiseMix mix = add_noise(noise, offset, draw.snr_db, sound);
    CHECK(mix.added);
    CHECK(mix.sound_power == doctest::Approx(line.at("speech_power").as_double()).epsilon(1e-12));
    CHECK(mix.noise_power == doctest::Approx(line.at("noise_power").as_double()).epsilon(1e-12));
    CHECK(mix.gain == doctest::Approx(line.at("gain").as_double()).epsilon(1e-12));
    for (const json::value& at : line.at("at").as_array()) {
      CHECK(std::abs(static_cast<double>(sound.at(number_of(at.as_array()[0]))) -
                     at.as_array()[1].as_double()) < 1e-7);
    }
  }
}

TEST_CASE("noise: long noise is cut and short noise repeats, from any place") {
  const DrawKey key{1, 2, 3, 4};
  for (const std::uint64_t noise : {1U, 2U, 99U, 100U, 101U, 5000U}) {
    Draws draws(key, DrawStage::noise);
    const std::uint64_t offset = draw_offset(draws, noise, 100);
    CHECK(offset < noise);
    if (noise >= 100) CHECK(offset + 100 <= noise);
  }
  std::vector<float> sound = {1, 1, 1, 1, 1};
  const std::vector<float> noise = {0.5F, -0.5F};
  const NoiseMix mix = add_noise(noise, 1, 0, sound);
  CHECK(mix.gain == doctest::Approx(2));
  CHECK(sound == std::vector<float>{0, 2, 0, 2, 0});
}

TEST_CASE("noise: nothing is added to silence, nor silence to sound") {
  std::vector<float> silence(100);
  const std::vector<float> loud(100, 0.5F);
  CHECK_FALSE(add_noise(loud, 0, 10, silence).added);
  CHECK(silence == std::vector<float>(100));
  std::vector<float> sound = loud;
  CHECK_FALSE(add_noise(silence, 0, 10, sound).added);
  CHECK_FALSE(add_noise({}, 0, 10, sound).added);
  CHECK(sound == loud);
}

TEST_CASE("telephone: the two laws of G.711") {
  const json::object golden = golden_json("augment.json");
  const json::object& g711 = golden.at("g711").as_object();
  const json::array& samples = g711.at("samples").as_array();
  for (const TelephoneLaw law : {TelephoneLaw::mu, TelephoneLaw::a}) {
    const std::string name = law == TelephoneLaw::mu ? "mu_law" : "a_law";
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto sample = samples[i].to_number<std::int16_t>();
      const std::uint8_t code = encode_g711(law, sample);
      CHECK(code == g711.at(name).as_array()[i].to_number<int>());
      CHECK(decode_g711(law, code) == g711.at(name + "_back").as_array()[i].to_number<int>());
    }
    // A code that was decoded comes back; µ-law's negative zero is 0.
    for (int code = 0; code < 256; ++code) {
      const auto again = encode_g711(law, decode_g711(law, static_cast<std::uint8_t>(code)));
      if (law == TelephoneLaw::mu && code == 0x7F) continue;
      CHECK(again == code);
    }
  }
}
