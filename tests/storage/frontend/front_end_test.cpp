#include "storage/features/frontend/front_end.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <thread>
#include <vector>

using namespace batchwright;

namespace {

using Values = std::vector<double>;

/// The formulae of DEFINITIONS.md once more, in double precision and by the definition of the DFT.
/// Nothing is shared with the front end, and it is as slow as it looks.
struct Reference {
  FrontEndOptions options;
  double rate;

  std::size_t samples_of(double ms) const {
    return static_cast<std::size_t>(std::lround(ms * rate / 1000));
  }
  std::size_t fft_size() const {
    std::size_t size = 1;
    while (size < samples_of(options.window_ms)) size *= 2;
    return options.fft_size == 0 ? size : options.fft_size;
  }

  Values frame(const std::vector<float>& samples, std::size_t start) const {
    const std::size_t window = samples_of(options.window_ms);
    Values cut(window);
    for (std::size_t i = 0; i < window && start + i < samples.size(); ++i) {
      cut[i] = static_cast<double>(samples[start + i]);
    }
    const double a = options.window == WindowShape::hamming ? 0.54 : 0.5;
    Values out(window);
    for (std::size_t i = 0; i < window; ++i) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(i) / (static_cast<double>(window) - 1);
      out[i] = (cut[i] - options.pre_emphasis * cut[i == 0 ? 0 : i - 1]) *
               (a - (1 - a) * std::cos(angle));
    }
    return out;
  }

  Values power(const Values& frame) const {
    const std::size_t n = fft_size();
    std::vector<std::complex<double>> roots(n);
    for (std::size_t i = 0; i < n; ++i) {
      roots[i] =
          std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n));
    }
    Values bins(n / 2 + 1);
    for (std::size_t k = 0; k < bins.size(); ++k) {
      std::complex<double> sum = 0;
      for (std::size_t i = 0; i < frame.size(); ++i) sum += frame[i] * roots[k * i % n];
      bins[k] = std::norm(sum);
    }
    return bins;
  }

  Values band_logs(const Values& bins) const {
    const auto mel = [](double hz) { return 1127.0104806 * std::log(1 + hz / 700); };
    const double low = mel(options.fmin_hz);
    const double high = mel(options.fmax_hz == 0 ? rate / 2 : options.fmax_hz);
    const double step = (high - low) / (options.mel_bands + 1.0);
    Values logs;
    for (std::uint32_t b = 0; b < options.mel_bands; ++b) {
      const double left = low + step * b;
      double energy = 0;
      for (std::size_t k = 0; k < bins.size(); ++k) {
        const double x = mel(static_cast<double>(k) * rate / static_cast<double>(fft_size()));
        const double rise = (x - left) / step;
        energy += bins[k] * std::max(0.0, std::min(rise, 2 - rise));
      }
      logs.push_back(std::log(std::max(energy, options.log_floor)));
    }
    return logs;
  }

  Values features(const std::vector<float>& samples) const {
    const std::size_t window = samples_of(options.window_ms);
    Values all;
    std::size_t start = 0;
    do {
      const Values logs = band_logs(power(frame(samples, start)));
      all.insert(all.end(), logs.begin(), logs.end());
      start += samples_of(options.hop_ms);
    } while (start + window <= samples.size());
    return all;
  }
};

/// A loud tone, a quiet one, and noise of one 16-bit step: the hard case for rounding.
std::vector<float> sound(std::size_t samples, double rate) {
  std::vector<float> out(samples);
  std::uint32_t noise = 1;
  for (std::size_t i = 0; i < samples; ++i) {
    noise = noise * 1664525 + 1013904223;
    const double t = static_cast<double>(i) / rate;
    const double wave = 0.9 * std::sin(2 * std::numbers::pi * 440 * t) +
                        0.001 * std::sin(2 * std::numbers::pi * 2500 * t * (1 + t));
    out[i] = static_cast<float>(std::round(wave * 32767 + (noise >> 31)) / 32768);
  }
  return out;
}

/// max |a - b| / max(|b|, 1)
double relative_error(const std::vector<float>& found, const Values& reference) {
  REQUIRE(found.size() == reference.size());
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(found[i]) - reference[i]) /
                                std::max(std::abs(reference[i]), 1.0));
  }
  return worst;
}

void check_against_reference(const FrontEndOptions& options, std::uint32_t rate,
                             std::size_t samples) {
  const auto front_end = FrontEnd::create(options, rate);
  REQUIRE(front_end);
  const auto audio = sound(samples, rate);
  const Values reference = Reference{options, static_cast<double>(rate)}.features(audio);
  CHECK(front_end->frames(samples) * front_end->dimensions() == reference.size());
  CHECK(relative_error(front_end->compute(audio), reference) < 1e-6);
}

std::string refusal(const FrontEndOptions& options, std::uint32_t rate = 8000) {
  const auto made = FrontEnd::create(options, rate);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == ErrorCode::invalid_argument);
  return made.error().message;
}

}  // namespace

TEST_CASE("storage: log-mel agrees with a double-precision reference") {
  FrontEndOptions options;
  SUBCASE("defaults at 8 kHz") { check_against_reference(options, 8000, 4000); }
  SUBCASE("80 bands at 16 kHz") {
    options.mel_bands = 80;
    options.fft_size = 1024;
    check_against_reference(options, 16000, 5000);
  }
  SUBCASE("Hann, other window and hop, no pre-emphasis") {
    options.window = WindowShape::hann;
    options.window_ms = 32;
    options.hop_ms = 12.5;
    options.pre_emphasis = 0;
    check_against_reference(options, 8000, 4001);
  }
  SUBCASE("a band of frequencies, an FFT that is no power of two, a high floor") {
    options.fft_size = 300;
    options.fmin_hz = 300;
    options.fmax_hz = 3400;
    options.mel_bands = 23;
    options.log_floor = 1e-3;
    check_against_reference(options, 8000, 3000);
  }
  SUBCASE("22.05 kHz") { check_against_reference(options, 22050, 4000); }
}

TEST_CASE("storage: frames are uncentred and whole, one at least") {
  const auto front_end = FrontEnd::create({}, 8000);  // a window of 200, a hop of 80
  REQUIRE(front_end);
  CHECK(front_end->frames(0) == 0);
  CHECK(front_end->frames(1) == 1);
  CHECK(front_end->frames(199) == 1);
  CHECK(front_end->frames(200) == 1);
  CHECK(front_end->frames(279) == 1);
  CHECK(front_end->frames(280) == 2);
  CHECK(front_end->frames(8000) == 98);
}

TEST_CASE("storage: audio shorter than a window is filled up with zeros") {
  for (const std::size_t samples : {std::size_t{1}, std::size_t{50}, std::size_t{199}})
    check_against_reference({}, 8000, samples);
}

TEST_CASE("storage: silence gives the floor") {
  const auto front_end = FrontEnd::create({}, 8000);
  REQUIRE(front_end);
  const auto features = front_end->compute(std::vector<float>(400));
  REQUIRE(features.size() == 120);
  for (const float value : features) CHECK(value == doctest::Approx(std::log(1e-10)));
}

TEST_CASE("storage: mfcc is the orthonormal DCT-II of log-mel") {
  FrontEndOptions options;
  options.features = FeatureKind::mfcc;
  options.cepstra = 13;
  const auto front_end = FrontEnd::create(options, 8000);
  REQUIRE(front_end);
  const auto audio = sound(2000, 8000);
  const Values logs = Reference{options, 8000}.features(audio);
  Values reference;
  for (std::size_t start = 0; start < logs.size(); start += 40) {
    for (std::size_t k = 0; k < 13; ++k) {
      double sum = 0;
      for (std::size_t b = 0; b < 40; ++b) {
        sum += logs[start + b] * std::cos(std::numbers::pi / 40 * (static_cast<double>(b) + 0.5) *
                                          static_cast<double>(k));
      }
      reference.push_back(sum * std::sqrt(k == 0 ? 1.0 / 40 : 2.0 / 40));
    }
  }
  CHECK(relative_error(front_end->compute(audio), reference) < 1e-6);
}

TEST_CASE("storage: one front end gives many threads the same bits") {
  const auto front_end = FrontEnd::create({}, 8000);
  REQUIRE(front_end);
  const auto audio = sound(8000, 8000);
  const auto expected = front_end->compute(audio);
  std::vector<std::vector<float>> found(4);
  {
    std::vector<std::jthread> threads;
    for (auto& one : found) {
      threads.emplace_back([&front_end, &audio, &one] { one = front_end->compute(audio); });
    }
  }
  for (const auto& one : found) CHECK(one == expected);
}

TEST_CASE("storage: front-end options out of range are refused by name") {
  FrontEndOptions options;
  SUBCASE("no window") {
    options.window_ms = 0;
    CHECK(refusal(options) ==
          "window of 0 ms is 0 samples at 8000 Hz; allowed: 1 to 1048576 samples");
  }
  SUBCASE("a window that is no number") {
    options.window_ms = std::nan("");
    CHECK(refusal(options).find("window of nan ms") == 0);
  }
  SUBCASE("no hop") {
    options.hop_ms = -1;
    CHECK(refusal(options).find("hop of -1 ms") == 0);
  }
  SUBCASE("fmax above half the rate") {
    options.fmax_hz = 8000;
    CHECK(refusal(options) == "fmax 8000 Hz; at 8000 Hz allowed: up to 4000 Hz, or 0 for that");
  }
  SUBCASE("fmin above fmax") {
    options.fmin_hz = 5000;
    CHECK(refusal(options) == "fmin 5000 Hz; allowed: 0 up to, but not, fmax 4000 Hz");
  }
  SUBCASE("an FFT below the window") {
    options.fft_size = 128;
    CHECK(refusal(options).find("an FFT of 128 points; allowed: 200 (the window)") == 0);
  }
  SUBCASE("bands narrower than the FFT can tell") {
    options.mel_bands = 200;
    CHECK(refusal(options).find("holds no FFT bin") != std::string::npos);
  }
  SUBCASE("pre-emphasis of one") {
    options.pre_emphasis = 1;
    CHECK(refusal(options).find("pre-emphasis 1 ") == 0);
  }
  SUBCASE("no floor") {
    options.log_floor = 0;
    CHECK(refusal(options).find("log floor 0 ") == 0);
  }
  SUBCASE("more cepstra than bands") {
    options.features = FeatureKind::mfcc;
    options.cepstra = 41;
    CHECK(refusal(options) == "41 cepstra of 40 mel bands; allowed: 1 to 40");
  }
}

TEST_CASE("storage: a front end's settings have no zeros left to guess") {
  const auto front_end = FrontEnd::create({}, 8000);
  REQUIRE(front_end);
  const auto settings = front_end->settings();
  const auto has = [&settings](const char* name, const char* value) {
    return std::find(settings.begin(), settings.end(),
                     std::pair<std::string, std::string>(name, value)) != settings.end();
  };
  CHECK(has("fft_size", "256"));
  CHECK(has("fmax_hz", "4000"));
  CHECK(has("log_floor", "1e-10"));
}
