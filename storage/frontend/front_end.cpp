#include "storage/frontend/front_end.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "storage/frontend/mel.h"
#include "storage/frontend/spectrum/fft_plan.h"
#include "storage/frontend/spectrum/frame_memory.h"

namespace batchwright {
namespace {

/// Options in samples, with nothing left open.
struct Measures {
  std::size_t window = 0;
  std::size_t hop = 0;
  std::uint32_t fft_size = 0;
  double fmax_hz = 0;
};

/// A minute at 16 kHz: a longer window is a mistaken unit.
constexpr std::uint32_t kMaxFftSize = 1U << 20;

Error wrong(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

/// Milliseconds in whole samples, rounded to the nearest.
Result<std::size_t> in_samples(const char* name, double ms, std::uint32_t rate) {
  const double samples = std::round(ms * rate / 1000);
  if (samples >= 1 && samples <= kMaxFftSize) return static_cast<std::size_t>(samples);
  return wrong(fmt::format("{} of {} ms is {} samples at {} Hz; allowed: 1 to {} samples", name, ms,
                           samples, rate, kMaxFftSize));
}

Result<void> check_numbers(const FrontEndOptions& options) {
  // Written so that NaN, which compares with nothing, is refused.
  if (!(options.pre_emphasis >= 0 && options.pre_emphasis < 1)) {
    return wrong(fmt::format("pre-emphasis {} is not in 0 <= k < 1", options.pre_emphasis));
  }
  if (!(options.log_floor > 0 && std::isfinite(options.log_floor))) {
    return wrong(fmt::format("log floor {} is not above 0", options.log_floor));
  }
  if (options.mel_bands < 1 || options.mel_bands > 4096) {
    return wrong(fmt::format("{} mel bands; allowed: 1 to 4096", options.mel_bands));
  }
  if (options.features == FeatureKind::mfcc &&
      (options.cepstra < 1 || options.cepstra > options.mel_bands)) {
    return wrong(fmt::format("{} cepstra of {} mel bands; allowed: 1 to {}", options.cepstra,
                             options.mel_bands, options.mel_bands));
  }
  return {};
}

Result<Measures> measure(const FrontEndOptions& options, std::uint32_t rate) {
  if (rate == 0) return wrong("a sample rate of 0 Hz");
  const auto window = in_samples("window", options.window_ms, rate);
  if (!window) return window.error();
  // Its weights divide by the window's size less one.
  if (*window < 2) return wrong("a window has at least 2 samples");
  const auto hop = in_samples("hop", options.hop_ms, rate);
  if (!hop) return hop.error();
  // The next power of two (README.md); a Workspace has zeros behind the window.
  const auto needed = static_cast<std::uint32_t>(std::bit_ceil(*window));
  const std::uint32_t fft_size = options.fft_size == 0 ? needed : options.fft_size;
  if (fft_size < *window || fft_size > kMaxFftSize) {
    return wrong(fmt::format("an FFT of {} points; allowed: {} (the window) to {}, or 0", fft_size,
                             *window, kMaxFftSize));
  }
  const double nyquist = rate / 2.0;
  const double fmax = options.fmax_hz == 0 ? nyquist : options.fmax_hz;
  if (!(fmax > 0 && fmax <= nyquist)) {
    return wrong(fmt::format("fmax {} Hz; at {} Hz allowed: up to {} Hz, or 0 for that",
                             options.fmax_hz, rate, nyquist));
  }
  if (!(options.fmin_hz >= 0 && options.fmin_hz < fmax)) {
    return wrong(
        fmt::format("fmin {} Hz; allowed: 0 up to, but not, fmax {} Hz", options.fmin_hz, fmax));
  }
  return Measures{*window, *hop, fft_size, fmax};
}

/// The symmetric window: both ends have the same value.
std::vector<double> window_weights(WindowShape shape, std::size_t size) {
  // HTK Book, "Speech Input/Output": 0.54 is Hamming's; 0.5 makes it Hann's, which ends in zeros.
  const double a = shape == WindowShape::hamming ? 0.54 : 0.5;
  std::vector<double> weights(size);
  for (std::size_t i = 0; i < size; ++i) {
    weights[i] = a - (1 - a) * std::cos(2 * std::numbers::pi * static_cast<double>(i) /
                                        static_cast<double>(size - 1));
  }
  return weights;
}

}  // namespace

struct FrontEnd::State {
  FrontEndOptions options;
  std::uint32_t sample_rate = 0;
  Measures measures;
  std::vector<double> window;
  MelFilters filters;
  std::vector<double> dct;           // empty for logmel
  std::vector<BandWeights> cepstra;  // its rows
  FftPlan plan;
};

namespace {

/// What one call of compute() writes to.
struct Workspace {
  Workspace(const Measures& measures, const FftPlan& plan, std::size_t bands, std::size_t cepstra)
      : samples((kFrameLanes - 1) * measures.hop + measures.window),
        frames(kFrameLanes * measures.fft_size),
        scratch(plan.scratch()),
        power(kFrameLanes * (measures.fft_size / 2 + 1)),
        energies(kFrameLanes * bands),
        cepstra(kFrameLanes * cepstra) {}

  std::vector<double> samples;  ///< Of kFrameLanes frames.
  FrameMemory frames;
  FrameMemory scratch;
  FrameMemory power;
  FrameMemory energies;
  FrameMemory cepstra;
};

/// Features [values][lanes] of the frames that `rest` begins with. Behind its end there is silence,
/// and frames there are for nobody.
const double* features_of(std::span<const float> rest, const FrontEnd::State& state,
                          Workspace& work) {
  const Measures& measures = state.measures;
  const FrameKernel& kernel = frame_kernel();
  const std::size_t there = std::min(rest.size(), work.samples.size());
  std::copy_n(rest.begin(), there, work.samples.begin());
  std::fill(work.samples.begin() + static_cast<std::ptrdiff_t>(there), work.samples.end(), 0.0);
  kernel.cut({work.samples.data(), measures.hop, measures.window, state.window.data(),
              state.options.pre_emphasis},
             work.frames.data());
  // The last transform wrote there.
  std::fill(work.frames.data() + kFrameLanes * measures.window,
            work.frames.data() + kFrameLanes * measures.fft_size, 0.0);
  kernel.power(state.plan.tables(), work.frames.data(), work.scratch.data(), work.power.data());
  const auto bands = state.filters.bands();
  kernel.weigh(bands.data(), bands.size(), work.power.data(), work.energies.data());
  // The floor keeps digital silence from becoming minus infinity.
  kernel.log(work.energies.data(), kFrameLanes * bands.size(), state.options.log_floor);
  if (state.cepstra.empty()) return work.energies.data();
  kernel.weigh(state.cepstra.data(), state.cepstra.size(), work.energies.data(),
               work.cepstra.data());
  return work.cepstra.data();
}

}  // namespace

FrontEnd::FrontEnd(std::unique_ptr<const State> state) : state_(std::move(state)) {}
FrontEnd::FrontEnd(FrontEnd&&) noexcept = default;
FrontEnd& FrontEnd::operator=(FrontEnd&&) noexcept = default;
FrontEnd::~FrontEnd() = default;

Result<FrontEnd> FrontEnd::create(const FrontEndOptions& options, std::uint32_t sample_rate) {
  if (auto checked = check_numbers(options); !checked) return checked.error();
  const auto measures = measure(options, sample_rate);
  if (!measures) return measures.error();
  auto filters = MelFilters::create(
      {options.mel_bands, measures->fft_size, sample_rate, options.fmin_hz, measures->fmax_hz});
  if (!filters) return filters.error();
  auto plan = FftPlan::create(measures->fft_size);
  if (!plan) return plan.error();
  std::vector<double> dct;
  if (options.features == FeatureKind::mfcc) dct = dct_rows(options.cepstra, options.mel_bands);
  std::vector<BandWeights> rows;
  for (std::size_t row = 0; row < dct.size(); row += options.mel_bands) {
    rows.push_back({0, options.mel_bands, dct.data() + row});
  }
  return FrontEnd(std::make_unique<const State>(
      State{options, sample_rate, *measures, window_weights(options.window, measures->window),
            std::move(*filters), std::move(dct), std::move(rows), std::move(*plan)}));
}

std::uint32_t FrontEnd::sample_rate() const { return state_->sample_rate; }

std::uint32_t FrontEnd::dimensions() const {
  const FrontEndOptions& options = state_->options;
  return options.features == FeatureKind::mfcc ? options.cepstra : options.mel_bands;
}

std::size_t FrontEnd::frames(std::size_t samples) const {
  if (samples == 0) return 0;
  const Measures& measures = state_->measures;
  // Audio shorter than a window is padded to one frame; else samples behind the last are unused.
  return samples < measures.window ? 1 : 1 + (samples - measures.window) / measures.hop;
}

std::vector<float> FrontEnd::compute(std::span<const float> samples) const {
  const std::size_t count = frames(samples.size());
  const std::size_t width = dimensions();
  std::vector<float> features(count * width);
  // One a call, so that threads share nothing that is written to.
  Workspace work(state_->measures, state_->plan, state_->filters.bands().size(),
                 state_->cepstra.size());
  for (std::size_t first = 0; first < count; first += kFrameLanes) {
    const std::size_t start = first * state_->measures.hop;
    const double* const values = features_of(samples.subspan(start), *state_, work);
    const std::size_t lanes = std::min(kFrameLanes, count - first);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      float* const frame = features.data() + (first + lane) * width;
      for (std::size_t i = 0; i < width; ++i) {
        frame[i] = static_cast<float>(values[i * kFrameLanes + lane]);
      }
    }
  }
  return features;
}

std::vector<std::pair<std::string, std::string>> FrontEnd::settings() const {
  const FrontEndOptions& options = state_->options;
  const bool mfcc = options.features == FeatureKind::mfcc;
  std::vector<std::pair<std::string, std::string>> all = {
      {"features", mfcc ? "mfcc" : "logmel"},
      {"sample_rate_hz", std::to_string(state_->sample_rate)},
      {"window_ms", fmt::format("{}", options.window_ms)},
      {"hop_ms", fmt::format("{}", options.hop_ms)},
      {"window", options.window == WindowShape::hamming ? "hamming" : "hann"},
      {"fft_size", std::to_string(state_->measures.fft_size)},
      {"mel_bands", std::to_string(options.mel_bands)},
      {"fmin_hz", fmt::format("{}", options.fmin_hz)},
      {"fmax_hz", fmt::format("{}", state_->measures.fmax_hz)},
      {"pre_emphasis", fmt::format("{}", options.pre_emphasis)},
      {"log_floor", fmt::format("{}", options.log_floor)}};
  if (mfcc) all.emplace_back("cepstra", std::to_string(options.cepstra));
  return all;
}

}  // namespace batchwright
