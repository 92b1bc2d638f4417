#include "storage/features/frontend/front_end.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "storage/features/frontend/framing.h"
#include "storage/features/frontend/mel.h"
#include "storage/features/frontend/plp.h"
#include "storage/features/frontend/settings.h"
#include "storage/features/frontend/spectrum/fft_plan.h"
#include "storage/features/frontend/spectrum/frame_memory.h"
#include "storage/features/frontend/whole_sound.h"

namespace batchwright {

struct FrontEnd::State {
  FrontEndOptions options;
  std::uint32_t sample_rate = 0;
  FrameMeasures measures;
  std::vector<double> window;
  MelFilters filters;
  std::vector<double> dct;           // of mfcc
  std::vector<BandWeights> cepstra;  // its rows
  std::optional<PlpCepstra> plp;     // of plp
  FftPlan<double> plan;
};

namespace {

/// Kaldi's least energy, 2^-23.
constexpr double kLeastEnergy = std::numeric_limits<float>::epsilon();

/// A cepstrum's number divided by a smaller one may be infinite, and its sine no number.
constexpr double kLeastLifter = 1e-3;

/// What one call of compute() writes to.
struct Workspace {
  explicit Workspace(const FrontEnd::State& state)
      : samples((kFrameLanes - 1) * state.measures.hop + state.window.size()),
        frames(kFrameLanes * state.measures.fft_size),
        scratch(state.plan.scratch()),
        power(kFrameLanes * (state.measures.fft_size / 2 + 1)),
        bands(kFrameLanes * state.filters.bands().size()),
        cepstra(kFrameLanes * (state.plp ? state.plp->cepstra() : state.cepstra.size())),
        energies(kFrameLanes) {}

  std::vector<double> samples;  ///< Of kFrameLanes frames.
  FrameMemory<double> frames;
  FrameMemory<double> scratch;
  FrameMemory<double> power;
  FrameMemory<double> bands;
  FrameMemory<double> cepstra;
  FrameMemory<double> energies;
};

Error wrong(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

Result<void> check_plp(const FrontEndOptions& options) {
  if (options.lpc_order < 1 || options.lpc_order > std::min(kMostLpcOrder, options.mel_bands - 1)) {
    return wrong(fmt::format("LPC order {} with {} mel bands; allowed: 1 to {}, below the bands",
                             options.lpc_order, options.mel_bands, kMostLpcOrder));
  }
  if (options.cepstra < 1 || options.cepstra > options.lpc_order + 1) {
    return wrong(fmt::format("{} cepstra of LPC order {}; allowed: 1 to {}", options.cepstra,
                             options.lpc_order, options.lpc_order + 1));
  }
  for (const auto& [name, value] : {std::pair("compress factor", options.compress_factor),
                                    std::pair("cepstral scale", options.cepstral_scale)}) {
    if (value > 0 && std::isfinite(value)) continue;
    return wrong(fmt::format("{} {} is not above 0", name, value));
  }
  if (options.compress_factor > 1) {
    return wrong(
        fmt::format("compress factor {}; allowed: above 0, up to 1", options.compress_factor));
  }
  // The power law takes the place of other logarithms, and what follows them has no meaning here.
  if (options.spectrum != Spectrum::power || options.log != LogKind::floor ||
      options.normalise != Normalise::none) {
    return wrong("plp goes with spectrum = power, log = floor and normalise = none");
  }
  return {};
}

Result<void> check_numbers(const FrontEndOptions& options) {
  // Written so that NaN, which compares with nothing, is refused.
  if (!(options.pre_emphasis >= 0 && options.pre_emphasis < 1)) {
    return wrong(fmt::format("pre-emphasis {} is not in 0 <= k < 1", options.pre_emphasis));
  }
  if (!(options.log_floor >= std::numeric_limits<double>::min() &&
        std::isfinite(options.log_floor))) {
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
  if (options.features == FeatureKind::plp) {
    if (auto checked = check_plp(options); !checked) return checked;
  }
  if (options.pad_to > std::numeric_limits<std::uint32_t>::max()) {
    return wrong(fmt::format("silence up to {} samples; allowed: up to 2^32 - 1", options.pad_to));
  }
  for (const auto& [name, value] :
       {std::pair("sample scale", options.sample_scale), std::pair("peak", options.peak),
        std::pair("top dB", options.top_db), std::pair("lifter", options.lifter),
        std::pair("energy floor", options.energy_floor)}) {
    if (value >= 0 && std::isfinite(value)) continue;
    return wrong(fmt::format("{} {} is not 0 or above", name, value));
  }
  if (options.lifter > 0 && options.lifter < kLeastLifter) {
    return wrong(fmt::format("lifter {}; allowed: 0, or {} and up", options.lifter, kLeastLifter));
  }
  return {};
}

/// Energies [bands][lanes] of the frames from `first` on, in work.bands; the frames' own in
/// work.energies.
void weigh_frames(const FramedSound& sound, std::uint64_t first, const FrontEnd::State& state,
                  Workspace& work) {
  const FrontEndOptions& options = state.options;
  const FrameKernel& kernel = frame_kernel();
  const std::size_t cut = state.window.size();
  sound.copy(sound.start_of(first), work.samples);
  const bool per_frame = options.emphasis == PreEmphasis::frame;
  kernel.cut({work.samples.data(), state.measures.hop, cut, state.window.data(),
              per_frame ? options.pre_emphasis : 0, options.remove_dc,
              options.use_energy && options.raw_energy ? work.energies.data() : nullptr,
              options.use_energy && !options.raw_energy ? work.energies.data() : nullptr},
             work.frames.data());
  // The last transform wrote there.
  std::fill(work.frames.data() + kFrameLanes * cut,
            work.frames.data() + kFrameLanes * state.measures.fft_size, 0.0);
  kernel.power(state.plan.tables(), work.frames.data(), work.scratch.data(), work.power.data());
  const std::size_t bins = kFrameLanes * (state.measures.fft_size / 2 + 1);
  if (options.spectrum == Spectrum::magnitude) kernel.root(work.power.data(), bins, 0);
  if (options.spectrum == Spectrum::soft_magnitude) kernel.root(work.power.data(), bins, 1e-9);
  const auto bands = state.filters.bands();
  kernel.weigh(bands.data(), bands.size(), work.power.data(), work.bands.data());
}

/// Logarithms in place of work.bands and work.energies.
void take_logs(const FrontEndOptions& options, std::size_t bands, Workspace& work) {
  const FrameKernel& kernel = frame_kernel();
  double* const values = work.bands.data();
  const std::size_t count = kFrameLanes * bands;
  if (options.log == LogKind::add) {
    for (std::size_t i = 0; i < count; ++i) values[i] += options.log_floor;
  }
  // The floor keeps digital silence from becoming minus infinity.
  kernel.log(values, count, options.log_floor);
  const double scale = options.log == LogKind::ten  ? 1 / std::numbers::ln10
                       : options.log == LogKind::db ? 10 / std::numbers::ln10
                                                    : 1;
  if (scale != 1) {
    for (std::size_t i = 0; i < count; ++i) values[i] *= scale;
  }
  if (!options.use_energy) return;
  kernel.log(work.energies.data(), kFrameLanes, std::max({kLeastEnergy, options.energy_floor}));
}

/// Writes the features of up to kFrameLanes frames, whose logarithms lie in `work`.
void write_frames(const FrontEnd::State& state, Workspace& work, std::size_t width,
                  std::span<float> out) {
  const FrontEndOptions& options = state.options;
  const bool cepstral = options.features != FeatureKind::logmel;
  if (state.plp) {
    state.plp->compute(work.bands.data(), work.cepstra.data());
  } else if (cepstral) {
    frame_kernel().weigh(state.cepstra.data(), state.cepstra.size(), work.bands.data(),
                         work.cepstra.data());
  }
  const double* const values = cepstral ? work.cepstra.data() : work.bands.data();
  // Energy takes the place of cepstrum 0, or one of its own before the bands. Kaldi's htk_compat
  // puts either behind the others.
  const std::size_t place = options.htk_compat ? width - 1 : 0;
  const std::size_t first = cepstral ? 1 : 0;
  const bool has_own = cepstral || options.use_energy;
  const std::size_t others = has_own && !options.htk_compat ? 1 : 0;
  const double scale =
      options.htk_compat && options.features == FeatureKind::mfcc ? std::numbers::sqrt2 : 1;
  for (std::size_t lane = 0; (lane + 1) * width <= out.size(); ++lane) {
    float* const frame = out.data() + lane * width;
    for (std::size_t i = 0; i < width - (has_own ? 1 : 0); ++i) {
      frame[others + i] = static_cast<float>(values[(first + i) * kFrameLanes + lane]);
    }
    if (options.use_energy) {
      frame[place] = static_cast<float>(work.energies.data()[lane]);
    } else if (cepstral) {
      frame[place] = static_cast<float>(values[lane] * scale);
    }
  }
}

/// Values of all frames are there before the first feature is.
class WholeValues {
 public:
  WholeValues(std::size_t frames, std::size_t bands) : bands_(bands), values_(frames * bands) {}

  std::span<double> all() { return values_; }

  void put(std::size_t first, const double* lanes) {
    each(first, [lanes](double& kept, std::size_t place) { kept = lanes[place]; });
  }
  void get(std::size_t first, double* lanes) {
    each(first, [lanes](const double& kept, std::size_t place) { lanes[place] = kept; });
  }

 private:
  /// Calls `use` with each value of up to kFrameLanes frames, and its place in [bands][lanes].
  template <class Use>
  void each(std::size_t first, Use use) {
    const std::size_t count = std::min(kFrameLanes, values_.size() / bands_ - first);
    for (std::size_t lane = 0; lane < count; ++lane) {
      double* const frame = values_.data() + (first + lane) * bands_;
      for (std::size_t b = 0; b < bands_; ++b) use(frame[b], b * kFrameLanes + lane);
    }
  }

  std::size_t bands_;
  std::vector<double> values_;
};

}  // namespace

FrontEnd::FrontEnd(std::unique_ptr<const State> state) : state_(std::move(state)) {}
FrontEnd::FrontEnd(FrontEnd&&) noexcept = default;
FrontEnd& FrontEnd::operator=(FrontEnd&&) noexcept = default;
FrontEnd::~FrontEnd() = default;

Result<FrontEnd> FrontEnd::create(const FrontEndOptions& options, std::uint32_t sample_rate) {
  if (auto checked = check_numbers(options); !checked) return checked.error();
  const auto measures = measure_frames(options, sample_rate);
  if (!measures) return measures.error();
  auto filters = MelFilters::create({options.mel_bands, measures->fft_size,
                                     options.whole_nyquist ? sample_rate / 2 * 2 : sample_rate,
                                     options.fmin_hz, measures->fmax_hz, options.scale,
                                     options.sides, options.equal_area, options.empty_bands});
  if (!filters) return filters.error();
  auto plan = FftPlan<double>::create(measures->fft_size);
  if (!plan) return plan.error();
  std::vector<double> dct;
  if (options.features == FeatureKind::mfcc) dct = dct_rows(options.cepstra, options.mel_bands);
  std::vector<BandWeights> rows;
  for (std::size_t m = 0; m * options.mel_bands < dct.size(); ++m) {
    double* const row = dct.data() + m * options.mel_bands;
    const double lifter = lifter_of(options, m);
    for (std::size_t b = 0; b < options.mel_bands; ++b) row[b] *= lifter;
    rows.push_back({0, options.mel_bands, row});
  }
  std::optional<PlpCepstra> plp;
  if (options.features == FeatureKind::plp) plp.emplace(options, *measures);
  return FrontEnd(std::make_unique<const State>(
      State{options, sample_rate, *measures, frame_weights(options, *measures), std::move(*filters),
            std::move(dct), std::move(rows), std::move(plp), std::move(*plan)}));
}

std::uint32_t FrontEnd::sample_rate() const { return state_->sample_rate; }

std::uint32_t FrontEnd::dimensions() const {
  const FrontEndOptions& options = state_->options;
  if (options.features != FeatureKind::logmel) return options.cepstra;
  return options.mel_bands + (options.use_energy ? 1 : 0);
}

std::size_t FrontEnd::frames(std::size_t samples) const {
  return count_frames(state_->options, state_->measures, samples);
}

std::vector<std::pair<std::string, std::string>> FrontEnd::settings() const {
  return settings_text(state_->options, state_->measures, state_->sample_rate);
}

std::vector<float> FrontEnd::compute(std::span<const float> samples) const {
  const State& state = *state_;
  const std::size_t count = frames(samples.size());
  const std::size_t width = dimensions();
  const std::size_t bands = state.filters.bands().size();
  std::vector<float> features(count * width);
  if (count == 0) return features;
  // One a call, so that threads share nothing that is written to.
  Workspace work(state);
  const FramedSound sound(state.options, state.measures, samples);
  const auto out = [&](std::size_t first) {
    return std::span(features).subspan(first * width, std::min(kFrameLanes, count - first) * width);
  };
  const bool whole = looks_at_all(state.options);
  WholeValues values(whole ? count : 0, bands);
  std::vector<double> energies;
  for (std::size_t first = 0; first < count; first += kFrameLanes) {
    weigh_frames(sound, first, state, work);
    take_logs(state.options, bands, work);
    if (!whole) {
      write_frames(state, work, width, out(first));
      continue;
    }
    values.put(first, work.bands.data());
    energies.insert(energies.end(), work.energies.data(), work.energies.data() + kFrameLanes);
  }
  if (!whole) return features;
  finish_values(state.options, bands, values.all());
  for (std::size_t first = 0; first < count; first += kFrameLanes) {
    values.get(first, work.bands.data());
    std::copy_n(energies.data() + first, kFrameLanes, work.energies.data());
    write_frames(state, work, width, out(first));
  }
  return features;
}

}  // namespace batchwright
