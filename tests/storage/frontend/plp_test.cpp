#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "storage/features/frontend/front_end.h"
#include "tests/storage/frontend/golden.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

FrontEndOptions kaldi_like(FeatureKind features) { return *front_end_like("kaldi", features); }

std::vector<float> of_speech(const FrontEndOptions& options) {
  const auto front_end = FrontEnd::create(options, 16000);
  REQUIRE_MESSAGE(front_end, front_end.error().message);
  return front_end->compute(sound_of("goodbye-16k"));
}

std::string plp_refusal(const FrontEndOptions& options) {
  const auto front_end = FrontEnd::create(options, 16000);
  REQUIRE_FALSE(front_end);
  return front_end.error().message;
}

/// Band energies of one frame of 400 samples, by the DFT as it is written, with torchaudio's
/// filters: bins over 0 to R div 2, triangles that are straight in Hz between corners on HTK's
/// scale.
std::vector<double> torchaudio_bands(const std::vector<float>& frame, std::uint32_t rate,
                                     std::size_t bands) {
  const std::size_t points = frame.size();
  const double top = rate / 2;  // whole
  std::vector<double> power;
  for (std::size_t j = 0; j <= points / 2; ++j) {
    double real = 0;
    double imaginary = 0;
    for (std::size_t n = 0; n < points; ++n) {
      const double turn =
          2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(points);
      const double weighed = static_cast<double>(frame[n]) * (0.5 - 0.5 * std::cos(turn));
      real += weighed * std::cos(turn * static_cast<double>(j));
      imaginary -= weighed * std::sin(turn * static_cast<double>(j));
    }
    power.push_back(real * real + imaginary * imaginary);
  }
  const auto corner = [&](std::size_t i) {
    const double mel =
        2595 * std::log10(1 + top / 700) * static_cast<double>(i) / static_cast<double>(bands + 1);
    return 700 * (std::pow(10, mel / 2595) - 1);
  };
  std::vector<double> energies;
  for (std::size_t b = 0; b < bands; ++b) {
    double energy = 0;
    for (std::size_t j = 0; j < power.size(); ++j) {
      const double hz = top * static_cast<double>(j) / static_cast<double>(power.size() - 1);
      const double rise = (hz - corner(b)) / (corner(b + 1) - corner(b));
      const double fall = (corner(b + 2) - hz) / (corner(b + 2) - corner(b + 1));
      energy += power[j] * std::max(0.0, std::min(rise, fall));
    }
    energies.push_back(energy);
  }
  return energies;
}

}  // namespace

TEST_CASE("frontend: PLP has Kaldi's defaults, and its cepstra begin with the energy") {
  const FrontEndOptions options = kaldi_like(FeatureKind::plp);
  CHECK(options.mel_bands == 23);
  CHECK(options.cepstra == 13);
  CHECK(options.lpc_order == 12);
  CHECK(options.lifter == 22);
  CHECK(options.use_energy);
  const auto plp = of_speech(options);
  const auto mfcc = of_speech(kaldi_like(FeatureKind::mfcc));
  REQUIRE(plp.size() == mfcc.size());
  for (std::size_t t = 0; t < plp.size(); t += 13) CHECK(plp[t] == mfcc[t]);
}

TEST_CASE("frontend: fewer cepstra and a scale leave the others of PLP as they are") {
  FrontEndOptions options = kaldi_like(FeatureKind::plp);
  options.use_energy = false;
  const auto whole = of_speech(options);
  options.cepstra = 5;
  options.cepstral_scale = 2;
  const auto part = of_speech(options);
  REQUIRE(part.size() / 5 == whole.size() / 13);
  for (std::size_t i = 0; i < part.size(); ++i) CHECK(part[i] == 2 * whole[i / 5 * 13 + i % 5]);
}

TEST_CASE("frontend: PLP of silence and of a constant is finite") {
  for (const bool energy : {true, false}) {
    FrontEndOptions options = kaldi_like(FeatureKind::plp);
    options.use_energy = energy;
    const auto front_end = FrontEnd::create(options, 16000);
    for (const float level : {0.0F, 0.5F, 1.0F}) {
      const auto features = front_end->compute(std::vector<float>(4000, level));
      CHECK(std::all_of(features.begin(), features.end(),
                        [](float value) { return std::isfinite(value); }));
    }
  }
}

TEST_CASE("frontend: settings that PLP cannot have are refused by name") {
  FrontEndOptions options = kaldi_like(FeatureKind::plp);
  options.cepstra = 14;
  CHECK(plp_refusal(options) == "14 cepstra of LPC order 12; allowed: 1 to 13");
  options.lpc_order = 23;
  CHECK(plp_refusal(options) ==
        "LPC order 23 with 23 mel bands; allowed: 1 to 64, below the bands");
  options = kaldi_like(FeatureKind::plp);
  options.compress_factor = 0;
  CHECK(plp_refusal(options) == "compress factor 0 is not above 0");
  options = kaldi_like(FeatureKind::plp);
  options.log = LogKind::db;
  CHECK(plp_refusal(options) == "plp goes with spectrum = power, log = floor and normalise = none");
  CHECK(front_end_like("librosa", FeatureKind::plp).error().message ==
        "features \"plp\" of convention \"librosa\"; allowed: like kaldi or kaldi-lhotse");
}

TEST_CASE("frontend: Kaldi's htk_compat puts the energy last, and scales cepstrum 0 of mfcc") {
  struct Case {
    FeatureKind features;
    bool use_energy;
    float scale;
  };
  for (const Case& one : {Case{FeatureKind::logmel, true, 1}, Case{FeatureKind::mfcc, true, 1},
                          Case{FeatureKind::mfcc, false, std::numbers::sqrt2_v<float>},
                          Case{FeatureKind::plp, true, 1}, Case{FeatureKind::plp, false, 1}}) {
    FrontEndOptions options = kaldi_like(one.features);
    options.use_energy = one.use_energy;
    const std::size_t width = FrontEnd::create(options, 16000)->dimensions();
    const auto plain = of_speech(options);
    options.htk_compat = true;
    const auto htk = of_speech(options);
    REQUIRE(htk.size() == plain.size());
    for (std::size_t at = 0; at < plain.size(); at += width) {
      CHECK(std::equal(plain.begin() + static_cast<long>(at) + 1,
                       plain.begin() + static_cast<long>(at + width),
                       htk.begin() + static_cast<long>(at)));
      CHECK(htk[at + width - 1] == doctest::Approx(plain[at] * one.scale));
    }
  }
  // Without an energy, bands have nothing that could stand elsewhere.
  FrontEndOptions options = kaldi_like(FeatureKind::logmel);
  const auto plain = of_speech(options);
  options.htk_compat = true;
  CHECK(of_speech(options) == plain);
}

TEST_CASE("frontend: torchaudio's filters end at half of an odd rate, rounded down") {
  const auto speech = sound_of("goodbye-16k");
  for (const std::uint32_t rate : {11'025U, 11'024U, 22'051U}) {
    FrontEndOptions options = *front_end_like("torchaudio", FeatureKind::logmel);
    options.log = LogKind::floor;
    options.top_db = 0;
    options.mel_bands = 40;
    const auto front_end = FrontEnd::create(options, rate);
    REQUIRE(front_end);
    const auto features = front_end->compute(speech);
    // Frame 10 lies around sample 2,000, inside the sound.
    const std::vector<float> frame(speech.begin() + 1800, speech.begin() + 2200);
    const auto wanted = torchaudio_bands(frame, rate, 40);
    for (std::size_t b = 0; b < 40; ++b) {
      CAPTURE(rate);
      CAPTURE(b);
      CHECK(apart(static_cast<double>(features[10 * 40 + b]),
                  std::log(std::max(wanted[b], 1e-10))) < 1e-6);
    }
  }
}

TEST_CASE("frontend: what decides nothing at even rates is no setting of theirs") {
  const FrontEndOptions options = *front_end_like("torchaudio", FeatureKind::logmel);
  const auto told = [&options](std::uint32_t rate) {
    const auto settings = FrontEnd::create(options, rate)->settings();
    return std::any_of(settings.begin(), settings.end(),
                       [](const auto& one) { return one.first == "whole_nyquist"; });
  };
  CHECK_FALSE(told(16'000));
  CHECK(told(11'025));
}
