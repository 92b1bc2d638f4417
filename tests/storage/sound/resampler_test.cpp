#include "storage/features/sound/resampler.h"

#include <numbers>

#include "storage/features/sound/telephone.h"
#include "tests/storage/frontend/golden.h"

// Other rates and speeds, and the telephone.

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A tone of an amplitude of 1; Hz.
std::vector<float> tone_of(double frequency, double rate, std::size_t samples) {
  std::vector<float> tone(samples);
  for (std::size_t n = 0; n < samples; ++n) {
    tone[n] = static_cast<float>(
        std::sin(2 * std::numbers::pi * frequency * static_cast<double>(n) / rate));
  }
  return tone;
}

RateRatio ratio_of(std::uint32_t from, std::uint32_t to, double speed = 1) {
  const auto ratio = rate_ratio(from, to, *parse_speed(speed));
  REQUIRE(ratio);
  return *ratio;
}

std::vector<float> resampled(Resampler& resampler, const RateRatio& ratio,
                             const std::vector<float>& sound) {
  std::vector<float> out(resampled_length(resampler.kind(), sound.size(), ratio), 7.0F);
  const auto done = resampler.resample(ratio, sound, out);
  REQUIRE_MESSAGE(done, done.error().message);
  return out;
}

/// Of the difference beside what was wanted, in dB, `skipped` samples at either end left out.
double signal_to_difference(const std::vector<float>& found, const std::vector<float>& wanted,
                            std::size_t skipped) {
  REQUIRE(found.size() == wanted.size());
  double signal = 0;
  double difference = 0;
  for (std::size_t n = skipped; n + skipped < wanted.size(); ++n) {
    const auto w = static_cast<double>(wanted[n]);
    const double d = static_cast<double>(found[n]) - w;
    signal += w * w;
    difference += d * d;
  }
  return 10 * std::log10(signal / difference);
}

/// The power of a tone against that of one with an amplitude of 1, in dB.
double level_of(const std::vector<float>& sound, std::size_t skipped) {
  double sum = 0;
  for (std::size_t n = skipped; n + skipped < sound.size(); ++n) {
    sum += static_cast<double>(sound[n]) * static_cast<double>(sound[n]);
  }
  return 10 * std::log10(2 * sum / static_cast<double>(sound.size() - 2 * skipped));
}

}  // namespace

TEST_CASE("resampling: speeds of 0.9 and 1.1 as soxr's best quality has them") {
  const auto sound = sound_of("goodbye-16k");
  Resampler resampler(ResamplerKind::soxr);
  const auto slow = resampled(resampler, ratio_of(16'000, 16'000, 0.9), sound);
  CHECK(signal_to_difference(slow, array_of<float>("speed0.9-soxr.goodbye-16k.npy"), 200) > 90);
  const auto fast = resampled(resampler, ratio_of(16'000, 16'000, 1.1), sound);
  CHECK(signal_to_difference(fast, array_of<float>("speed1.1-soxr.goodbye-16k.npy"), 200) > 90);
  Resampler sinc(ResamplerKind::sinc);
  const auto short_sincs = resampled(sinc, ratio_of(16'000, 16'000, 0.9), sound);
  const auto wanted = array_of<float>("speed0.9-sinc.goodbye-16k.npy");
  CHECK(farthest(short_sincs, wanted) < 1e-6);
}

TEST_CASE("resampling: ripple, images and aliases") {
  Resampler resampler(ResamplerKind::soxr);
  struct Case {
    std::uint32_t from;
    std::uint32_t to;
    double speed;
  };
  for (const Case& each : {Case{16'000, 16'000, 0.9}, Case{16'000, 16'000, 1.1},
                           Case{44'100, 16'000, 1}, Case{8'000, 16'000, 1}}) {
    const RateRatio ratio = ratio_of(each.from, each.to, each.speed);
    const double from = each.from * each.speed;
    const double lower = std::min(from, static_cast<double>(each.to)) / 2;
    CAPTURE(each.from);
    CAPTURE(each.speed);
    const auto passed = [&](double share) {
      return level_of(resampled(resampler, ratio, tone_of(lower * share, from, 40'000)), 2000);
    };
    for (const double share : {0.01, 0.1, 0.25, 0.5, 0.7, 0.8}) {
      CHECK(std::abs(passed(share)) <= 0.01);
    }
    CHECK(std::abs(passed(0.9)) <= 0.1);
    // What lies above the lower of both folds down, unless it is kept out.
    if (from > each.to) CHECK(passed(1.05) <= -100);
  }
}

TEST_CASE("resampling: the same bits from one that has worked and one that has not") {
  const auto sound = sound_of("goodbye-16k");
  const RateRatio slow = ratio_of(16'000, 16'000, 0.9);
  for (const ResamplerKind kind : {ResamplerKind::soxr, ResamplerKind::sinc}) {
    Resampler fresh(kind);
    Resampler used(kind);
    const auto wanted = resampled(fresh, slow, sound);
    resampled(used, ratio_of(16'000, 8'000), sound);
    resampled(used, slow, sound_of("hello-16k"));
    CHECK(resampled(used, slow, sound) == wanted);
    // More ratios than are kept.
    for (std::uint32_t to = 8000; to < 8000 + Resampler::kMostRatios + 8; ++to) {
      resampled(used, ratio_of(16'000, to), std::vector<float>(sound.begin(), sound.begin() + 500));
    }
    CHECK(resampled(used, slow, sound) == wanted);
  }
}

TEST_CASE("resampling: sound of no sample, of one, and of a few") {
  for (const ResamplerKind kind : {ResamplerKind::soxr, ResamplerKind::sinc}) {
    Resampler resampler(kind);
    const RateRatio ratio = ratio_of(16'000, 16'000, 0.9);
    CHECK(resampled(resampler, ratio, {}).empty());
    for (std::size_t size = 1; size < 40; ++size) {
      for (const float sample : resampled(resampler, ratio, std::vector<float>(size, 0.5F))) {
        CHECK(std::isfinite(sample));
        CHECK(std::abs(sample) < 1);
      }
    }
    const std::vector<float> sound = {0.5F, -0.25F, 0.125F};
    CHECK(resampled(resampler, ratio_of(8'000, 8'000), sound) == sound);
  }
  Resampler sinc(ResamplerKind::sinc);
  std::vector<float> out(100);
  const auto refused = sinc.resample(ratio_of(1'048'575, 1'048'573), std::vector<float>(100), out);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("resampler \"soxr\" does any ratio") != std::string::npos);
}

TEST_CASE("telephone: as long as before, and nothing above 4 kHz") {
  Resampler resampler(ResamplerKind::soxr);
  TelephoneScratch scratch;
  for (const TelephoneLaw law : {TelephoneLaw::mu, TelephoneLaw::a}) {
    auto speech = tone_of(1000, 16'000, 16'000);
    for (float& sample : speech) sample *= 0.5F;
    REQUIRE(apply_telephone_band(law, 16'000, speech, resampler, scratch));
    CHECK(speech.size() == 16'000);
    CHECK(std::abs(level_of(speech, 2000) + 6.02) < 0.1);
    auto hiss = tone_of(6000, 16'000, 16'000);
    REQUIRE(apply_telephone_band(law, 16'000, hiss, resampler, scratch));
    CHECK(level_of(hiss, 2000) < -50);
  }
}
