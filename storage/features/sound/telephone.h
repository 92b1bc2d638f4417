#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/features/frontend/frontend.h"
#include "storage/features/sound/resampler.h"

namespace batchwright {

/// Samples a second of a telephone line.
inline constexpr std::uint32_t kTelephoneRate = 8000;

/// The two companding laws of ITU-T G.711.
enum class TelephoneLaw : std::uint8_t { mu, a };
enum class TelephoneLaws : std::uint8_t { mu, a, any };

struct TelephoneOptions {
  double probability = 0;
  TelephoneLaws law = TelephoneLaws::any;
  friend bool operator==(const TelephoneOptions&, const TelephoneOptions&) = default;
};

/// Errors: invalid_argument: a probability outside 0 ... 1.
Result<void> check(const TelephoneOptions& options);

struct TelephoneDraw {
  bool applies = false;
  TelephoneLaw law = TelephoneLaw::mu;
};
TelephoneDraw draw_telephone(const DrawKey& key, const TelephoneOptions& options);

/// One sample as eight bits, and back.
std::uint8_t encode_g711(TelephoneLaw law, std::int16_t sample);
std::int16_t decode_g711(TelephoneLaw law, std::uint8_t code);

/// Memory that a call takes; it grows to the longest sound and is used again.
/// Threads: one at a time.
struct TelephoneScratch {
  std::vector<float> line;  ///< At 8 kHz.
  std::vector<float> back;
};

/// Sound of `rate` Hz as it comes out of a telephone: at 8 kHz, as G.711, and back, as long as it
/// was. In place. Errors: those of rate_ratio() and of the resampler.
Result<void> apply_telephone_band(TelephoneLaw law, std::uint32_t rate, std::span<float> sound,
                                  Resampler& resampler, TelephoneScratch& scratch);

}  // namespace batchwright
