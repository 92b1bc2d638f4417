#pragma once

#include <cstdint>

#include "formats/formats.h"

namespace batchwright {

// How long a sequence is after each step: whole-number functions of how long it was before, so that
// lengths are known before anything is read. None falls as its length grows.

/// The speed of a sound in thousandths, its pitch moving along: 1100 is 1.1.
struct Speed {
  std::uint32_t thousandths = 1000;
  friend bool operator==(const Speed&, const Speed&) = default;
};

/// Errors: invalid_argument, unless the factor lies in 0.5 ... 2 and has at most three places.
Result<Speed> parse_speed(double factor);

/// `from` samples become `to`: a and b of DEFINITIONS.md. Both above 0.
struct RateRatio {
  std::uint64_t from = 1;
  std::uint64_t to = 1;
  friend auto operator<=>(const RateRatio&, const RateRatio&) = default;
};

/// Hz. The highest rate; with it no product of a length's formula passes 64 bits.
inline constexpr std::uint32_t kMostRate = 1U << 20;

/// What one resampling does to change a stored rate to a feed's, both in Hz, and the speed,
/// reduced. Errors: invalid_argument: a rate of 0 Hz or above kMostRate, or a speed that
/// parse_speed() does not give.
Result<RateRatio> rate_ratio(std::uint32_t stored_rate, std::uint32_t feed_rate, Speed speed);

enum class ResamplerKind : std::uint8_t {
  soxr,  ///< libsoxr, quality HQ.
  sinc,  ///< Short windowed sincs, as torchaudio has them by default: images of -28 dB.
};

/// Samples after resampling: to the nearest, half up (soxr), or upwards (sinc). The ratio is one of
/// rate_ratio()'s.
std::uint64_t resampled_length(ResamplerKind kind, std::uint64_t samples, const RateRatio& ratio);

/// Which of a stack's frames is the one that it stands for: k frames lie before it.
enum class StackAlign : std::uint8_t {
  right,   ///< The first, k = 0.
  centre,  ///< k = (stack - 1) div 2
  left,    ///< The last, k = stack - 1.
};
/// What follows the last frame where a stack reaches behind it.
enum class StackEnd : std::uint8_t {
  repeat,  ///< The last frame again.
  zeros,
  drop,  ///< There is no such stack.
};

/// `stack` frames side by side, each `stride` frames.
struct Stacking {
  std::uint32_t stack = 1;
  std::uint32_t stride = 1;
  StackAlign align = StackAlign::right;
  StackEnd end = StackEnd::repeat;
  std::uint32_t target_offset = 0;  ///< Frame of the stride that targets are taken of.
  friend bool operator==(const Stacking&, const Stacking&) = default;
};

/// Errors: invalid_argument, naming the setting: a stack or stride of 0 or above 1,024, or a
/// target_offset that is not below the stride. A stride above the stack leaves frames out.
Result<void> check(const Stacking& stacking);
std::uint64_t stacked_length(std::uint64_t frames, const Stacking& stacking);
/// k of StackAlign.
std::uint32_t frames_before(const Stacking& stacking);

/// Frames offset, offset + of, ... of a sequence.
struct KeepOne {
  std::uint32_t of = 1;
  std::uint32_t offset = 0;
  friend bool operator==(const KeepOne&, const KeepOne&) = default;
};

/// Errors: invalid_argument, naming the setting: `of` is 0 or above 1,024, or not above `offset`.
Result<void> check(const KeepOne& keep);
std::uint64_t kept_length(std::uint64_t frames, const KeepOne& keep);

/// Targets come `frames` later than what they belong to.
struct LabelDelay {
  std::uint32_t frames = 0;
  bool extend = true;  ///< The last frame is repeated so that no target is lost, or it is not.
  friend bool operator==(const LabelDelay&, const LabelDelay&) = default;
};

/// Errors: invalid_argument: a delay above 65,536 frames.
Result<void> check(const LabelDelay& delay);
/// Frames behind the delay; 0 of none.
std::uint64_t delayed_length(std::uint64_t frames, const LabelDelay& delay);
/// Of these the ones whose target is not ignored.
std::uint64_t real_targets(std::uint64_t frames, const LabelDelay& delay);

}  // namespace batchwright
