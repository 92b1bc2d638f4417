#include "storage/features/frontend/augment/room.h"

#include <limits>

#include "storage/features/frontend/augment/samples.h"
#include "tests/storage/frontend/golden.h"

// Reverberation, dither, and whole samples.

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("reverberation: golden speech in a golden room") {
  auto sound = sound_of("goodbye-16k");
  const auto room = Room::create(array_of<float>("rir.npy"));
  REQUIRE(room);
  CHECK(room->direct_path() == 37);
  Reverberation reverberation;
  reverberation.apply(*room, true, sound);
  const auto wanted = array_of<float>("reverb.goodbye-16k.npy");
  REQUIRE(sound.size() == wanted.size());
  float most = 0;
  float off = 0;
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    most = std::max(most, std::abs(wanted[n]));
    off = std::max(off, std::abs(sound[n] - wanted[n]));
  }
  CHECK(off <= 1e-6F * most);
}

TEST_CASE("reverberation: as the sum that defines it, whatever the sizes") {
  Reverberation reverberation;
  std::uint64_t seed = 1;
  const auto random = [&seed] {
    seed = mix64(seed + 1);
    return static_cast<float>(static_cast<double>(seed >> 11) * 0x1p-52 - 1);
  };
  for (const std::size_t taps : {1U, 2U, 255U, 256U, 257U, 2047U, 2048U, 5000U, 40'000U}) {
    for (const std::size_t samples : {1U, 2U, 255U, 256U, 257U, 4000U, 9000U}) {
      std::vector<float> response(taps);
      for (std::size_t i = 0; i < taps; ++i) response[i] = i % 97 == 0 ? random() : 0.0F;
      response[taps / 2] = -2;
      std::vector<float> sound(samples);
      for (float& sample : sound) sample = random();
      std::vector<double> wanted(samples);
      for (std::size_t i = 0; i < taps; ++i) {
        if (response[i] == 0) continue;
        for (std::size_t n = 0; n < samples; ++n) {
          const std::size_t from = n + taps / 2 - i;  // wraps below 0, which is above samples
          if (from < samples) {
            wanted[n] += static_cast<double>(response[i]) * static_cast<double>(sound[from]);
          }
        }
      }
      const auto room = Room::create(response);
      REQUIRE(room);
      CHECK(room->direct_path() == taps / 2);
      reverberation.apply(*room, false, sound);
      double off = 0;
      double most = 0;
      for (std::size_t n = 0; n < samples; ++n) {
        off = std::max(off, std::abs(wanted[n] - static_cast<double>(sound[n])));
        most = std::max(most, std::abs(wanted[n]));
      }
      CAPTURE(taps);
      CAPTURE(samples);
      CHECK(off <= 1e-6 * most);
    }
  }
}

TEST_CASE("reverberation: silence stays so, and responses that say nothing are refused") {
  Reverberation reverberation;
  const auto room = Room::create(std::vector<float>{1, 0.5F});
  REQUIRE(room);
  std::vector<float> silence(1000);
  reverberation.apply(*room, true, silence);
  CHECK(silence == std::vector<float>(1000));
  std::vector<float> none;
  reverberation.apply(*room, true, none);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_FALSE(Room::create({}));
  CHECK_FALSE(Room::create(std::vector<float>{0, 0}));
  CHECK_FALSE(Room::create(std::vector<float>{1, nan}));
  CHECK_FALSE(Room::create(std::vector<float>(Room::kMostTaps + 1, 1.0F)));
}

TEST_CASE("reverberation: a response that would make sound infinite is refused") {
  const auto room = Room::create(std::vector<float>{3e38F, 3e38F});
  REQUIRE_FALSE(room);
  CHECK(room.error().message.find("; allowed: up to 1e+24") != std::string::npos);
  CHECK(Room::create(std::vector<float>{9e23F, 1e22F}));
}

TEST_CASE("samples: to the nearest whole number, ties to even, saturated and counted") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> sound = {0,  0.5F / 32768, 1.5F / 32768, -0.5F / 32768,   1,
                                    -1, -1.1F,        nan,          32767.0F / 32768};
  std::vector<std::int16_t> whole(sound.size());
  CHECK(to_whole_samples(sound, whole) == 3);
  CHECK(whole == std::vector<std::int16_t>{0, 0, 2, 0, 32767, -32768, -32768, 0, 32767});
  // Every stored sample comes back.
  for (int sample = -32768; sample < 32768; ++sample) {
    if (whole_sample(static_cast<double>(static_cast<float>(sample) / 32768)) != sample) {
      FAIL_CHECK(sample);
    }
  }
}

TEST_CASE("dither: once a sample, of the deviation asked for") {
  const DrawKey key{7, 3, 12345, 0};
  std::vector<float> sound(100'001);
  add_dither(key, 2, 32768, sound);
  double sum = 0;
  double squares = 0;
  for (const float sample : sound) {
    sum += static_cast<double>(sample);
    squares += static_cast<double>(sample) * static_cast<double>(sample);
  }
  const auto count = static_cast<double>(sound.size());
  CHECK(std::abs(sum / count) < 1e-6);
  CHECK(std::sqrt(squares / count) * 32768 == doctest::Approx(2).epsilon(0.02));
  // Each sample has a number of its own: a shorter sound has the same ones.
  std::vector<float> shorter(77);
  add_dither(key, 2, 32768, shorter);
  CHECK(std::equal(shorter.begin(), shorter.end(), sound.begin()));
  CHECK_FALSE(check_dither(-1));
  CHECK(check_dither(0));
}
