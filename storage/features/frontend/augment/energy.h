#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace batchwright {

/// The sum of squares, in double: eight sums side by side, since one would wait for each of its
/// additions. The same bits for the same sound, whatever the processor.
inline double energy_of(std::span<const float> sound) {
  constexpr std::size_t kSums = 8;
  std::array<double, kSums> sums{};
  std::size_t n = 0;
  for (; n + kSums <= sound.size(); n += kSums) {
    for (std::size_t lane = 0; lane < kSums; ++lane) {
      const auto sample = static_cast<double>(sound[n + lane]);
      sums[lane] += sample * sample;
    }
  }
  for (std::size_t lane = 0; n < sound.size(); ++n, ++lane) {
    const auto sample = static_cast<double>(sound[n]);
    sums[lane] += sample * sample;
  }
  double sum = 0;
  for (const double each : sums) sum += each;
  return sum;
}

}  // namespace batchwright
