#include "storage/features/sound/telephone.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "storage/features/frontend/frontend.h"

namespace batchwright {
namespace {

// Both laws: a sign bit, the number of one of eight segments, each of which has steps twice as
// large as the one before, and one of its sixteen steps. Lowest bits that a law does not see are
// cut off towards minus infinity, as an arithmetic shift does.

/// Bits of a number without its leading zeros.
int bits_in(int number) { return static_cast<int>(std::bit_width(static_cast<unsigned>(number))); }

/// 14 bits. 33 is added so that each segment begins at a power of two; codes go inverted.
std::uint8_t encode_mu(std::int16_t sample) {
  const int shifted = sample >> 2;
  const bool negative = shifted < 0;
  const int magnitude = std::min(negative ? -shifted : shifted, 8158) + 33;
  const int segment = bits_in(magnitude) - 6;
  const int code = segment << 4 | ((magnitude >> (segment + 1)) & 15);
  return static_cast<std::uint8_t>(code ^ (negative ? 0x7F : 0xFF));
}

int decode_mu(std::uint8_t code) {
  const int bits = code ^ 0xFF;
  const int magnitude = ((2 * (bits & 15) + 33) << (bits >> 4 & 7)) - 33;
  return 4 * ((bits & 0x80) != 0 ? -magnitude : magnitude);
}

/// 13 bits. The first two segments have the same steps; every second bit goes inverted.
std::uint8_t encode_a(std::int16_t sample) {
  const int shifted = sample >> 3;
  const bool negative = shifted < 0;
  const int magnitude = negative ? -shifted - 1 : shifted;
  const int segment = std::max(bits_in(magnitude) - 5, 0);
  const int code = segment << 4 | ((magnitude >> std::max(segment, 1)) & 15);
  return static_cast<std::uint8_t>(code ^ (negative ? 0x55 : 0xD5));
}

int decode_a(std::uint8_t code) {
  const int bits = code ^ 0x55;
  const int segment = bits >> 4 & 7;
  // The middle of a step.
  const int step = 2 * (bits & 15) + 1;
  const int magnitude = segment == 0 ? step : (step + 32) << (segment - 1);
  return 8 * ((bits & 0x80) != 0 ? magnitude : -magnitude);
}

}  // namespace

Result<void> check(const TelephoneOptions& options) {
  if (options.probability >= 0 && options.probability <= 1) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("telephone_probability {}; allowed: 0 to 1", options.probability)};
}

TelephoneDraw draw_telephone(const DrawKey& key, const TelephoneOptions& options) {
  Draws draws(key, DrawStage::telephone);
  TelephoneDraw draw;
  draw.applies = draws.chance(options.probability);
  if (options.law == TelephoneLaws::any) {
    draw.law = draws.below(2) == 0 ? TelephoneLaw::mu : TelephoneLaw::a;
  } else {
    draw.law = options.law == TelephoneLaws::mu ? TelephoneLaw::mu : TelephoneLaw::a;
  }
  return draw;
}

std::uint8_t encode_g711(TelephoneLaw law, std::int16_t sample) {
  return law == TelephoneLaw::mu ? encode_mu(sample) : encode_a(sample);
}

std::int16_t decode_g711(TelephoneLaw law, std::uint8_t code) {
  return static_cast<std::int16_t>(law == TelephoneLaw::mu ? decode_mu(code) : decode_a(code));
}

Result<void> apply_telephone_band(TelephoneLaw law, std::uint32_t rate, std::span<float> sound,
                                  Resampler& resampler, TelephoneScratch& scratch) {
  const auto to_line = rate_ratio(rate, kTelephoneRate, Speed{});
  if (!to_line) return to_line.error();
  const RateRatio from_line{to_line->to, to_line->from};
  scratch.line.resize(resampled_length(resampler.kind(), sound.size(), *to_line));
  if (auto bad = resampler.resample(*to_line, sound, scratch.line); !bad) return bad;
  for (float& sample : scratch.line) {
    const std::uint8_t code = encode_g711(law, whole_sample(static_cast<double>(sample)));
    sample = static_cast<float>(decode_g711(law, code)) / 32768;
  }
  scratch.back.resize(resampled_length(resampler.kind(), scratch.line.size(), from_line));
  if (auto bad = resampler.resample(from_line, scratch.line, scratch.back); !bad) return bad;
  scratch.back.resize(sound.size(), 0.0F);
  std::copy(scratch.back.begin(), scratch.back.end(), sound.begin());
  return {};
}

}  // namespace batchwright
