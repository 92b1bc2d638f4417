#include "storage/features/frontend/augment/noise.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "storage/features/frontend/augment/energy.h"

namespace batchwright {
namespace {

constexpr double kMostDb = 200;
/// Mean square below which sound is silence: less than a step of 24 bits.
constexpr double kSilence = 1e-12;

Result<void> check_range(const char* name, double low, double high) {
  if (low >= -kMostDb && high <= kMostDb && low <= high) return {};  // written so that NaN fails
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} from {} to {} dB; allowed: a range within {} to {}, its lower end "
                           "first",
                           name, low, high, -kMostDb, kMostDb)};
}

/// Calls `use` with the runs of noise that is repeated from an offset on, and where each begins in
/// the sound.
template <class Use>
void each_run(std::span<const float> noise, std::uint64_t offset, std::size_t samples, Use use) {
  std::size_t at = offset % noise.size();
  for (std::size_t n = 0; n < samples;) {
    const std::size_t run = std::min(samples - n, noise.size() - at);
    use(n, noise.subspan(at, run));
    n += run;
    at = 0;
  }
}

}  // namespace

Result<void> check(const NoiseOptions& options) {
  if (!(options.probability >= 0 && options.probability <= 1)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("noise_probability {}; allowed: 0 to 1", options.probability)};
  }
  return check_range("snr_db", options.snr_low_db, options.snr_high_db);
}

NoiseDraw draw_noise(Draws& draws, const NoiseOptions& options, std::uint32_t sources) {
  NoiseDraw draw;
  draw.applies = draws.chance(options.probability);
  draw.source = draws.below(sources);
  draw.snr_db = draws.between(options.snr_low_db, options.snr_high_db);
  return draw;
}

std::uint64_t draw_offset(Draws& draws, std::uint64_t noise_samples, std::uint64_t samples) {
  return draws.below(noise_samples >= samples ? noise_samples - samples + 1 : noise_samples);
}

NoiseMix add_noise(std::span<const float> noise, std::uint64_t offset, double snr_db,
                   std::span<float> sound) {
  NoiseMix mix;
  if (sound.empty() || noise.empty()) return mix;
  const auto count = static_cast<double>(sound.size());
  mix.sound_power = energy_of(sound) / count;
  each_run(noise, offset, sound.size(),
           [&mix](std::size_t, std::span<const float> run) { mix.noise_power += energy_of(run); });
  mix.noise_power /= count;
  if (mix.sound_power < kSilence || mix.noise_power < kSilence) return mix;
  mix.added = true;
  mix.gain = std::sqrt(mix.sound_power / (mix.noise_power * std::pow(10, snr_db / 10)));
  const double gain = mix.gain;
  each_run(noise, offset, sound.size(), [&](std::size_t n, std::span<const float> run) {
    float* const out = sound.data() + n;
    for (std::size_t i = 0; i < run.size(); ++i) {
      out[i] = static_cast<float>(static_cast<double>(out[i]) + gain * static_cast<double>(run[i]));
    }
  });
  return mix;
}

Result<void> check(const GainOptions& options) {
  return check_range("gain_db", options.low_db, options.high_db);
}

double draw_gain_db(const DrawKey& key, const GainOptions& options) {
  return Draws(key, DrawStage::gain).between(options.low_db, options.high_db);
}

void apply_gain(double gain_db, std::span<float> sound) {
  const double factor = std::pow(10, gain_db / 20);
  for (float& sample : sound) sample = static_cast<float>(static_cast<double>(sample) * factor);
}

}  // namespace batchwright
