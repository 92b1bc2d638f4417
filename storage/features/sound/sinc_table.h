#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/features/frontend/frontend.h"

namespace batchwright {

/// Windowed sincs of one ratio, as torchaudio has them by default: 6 zero crossings, Hann's window,
/// a cut-off at 0.99 of the lower Nyquist frequency. For recipes that must match it; images are at
/// -28 dB. Immutable. Threads: any.
class SincTable {
 public:
  /// Weights of a table at most: 32 MiB.
  static constexpr std::uint64_t kMostWeights = std::uint64_t{1} << 22;

  /// Errors: invalid_argument: a ratio whose table would be larger.
  static Result<SincTable> create(const RateRatio& ratio);

  /// Sound is silent outside of its samples. `out` is other memory.
  void resample(std::span<const float> sound, std::span<float> out) const;

 private:
  SincTable() = default;

  RateRatio ratio_;
  std::int64_t side_ = 0;        // taps on each side of the one at an output's place or below
  std::int64_t taps_ = 0;        // 2 side + 2, and some of weight 0
  std::vector<double> weights_;  // [ratio.to][taps]
};

}  // namespace batchwright
