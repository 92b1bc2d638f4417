#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/features/frontend/augment/draws.h"

namespace batchwright {

// Noise that is added, and gain. Sound is float32 in about -1 ... 1 and changed in place.

struct NoiseOptions {
  double probability = 1;
  double snr_low_db = 5;
  double snr_high_db = 20;
  friend bool operator==(const NoiseOptions&, const NoiseOptions&) = default;
};

/// Errors: invalid_argument, naming the setting: a probability outside 0 ... 1, ratios that are
/// upside down or outside of -200 ... 200 dB.
Result<void> check(const NoiseOptions& options);

/// Which noise a row gets.
struct NoiseDraw {
  bool applies = false;
  std::uint32_t source = 0;
  double snr_db = 0;
};

/// The draws for one row: chance, source and ratio; draw_offset() goes on with them. `sources` is
/// how many sequences of noise there are, at least 1.
NoiseDraw draw_noise(Draws& draws, const NoiseOptions& options, std::uint32_t sources);

/// Where the noise begins: long noise is cut, short noise is repeated from a random point. Samples
/// of noise and of sound, 1 to 2^32 - 1 each.
std::uint64_t draw_offset(Draws& draws, std::uint64_t noise_samples, std::uint64_t samples);

/// What adding noise did.
struct NoiseMix {
  bool added = false;  ///< False where sound or noise is silent.
  double sound_power = 0;
  double noise_power = 0;  ///< Mean squares over the sound's samples.
  double gain = 0;         ///< What the noise was multiplied by.
};

/// Adds noise(offset + n modulo its size), as loud as the ratio of powers says. A caller that has
/// only the piece of long noise from the offset on passes it with offset 0.
NoiseMix add_noise(std::span<const float> noise, std::uint64_t offset, double snr_db,
                   std::span<float> sound);

struct GainOptions {
  double low_db = 0;
  double high_db = 0;
  friend bool operator==(const GainOptions&, const GainOptions&) = default;
};

/// Errors: invalid_argument: a range that is upside down or outside of -200 ... 200 dB.
Result<void> check(const GainOptions& options);
double draw_gain_db(const DrawKey& key, const GainOptions& options);
void apply_gain(double gain_db, std::span<float> sound);

}  // namespace batchwright
