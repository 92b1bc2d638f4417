#include "storage/sound/sinc_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace batchwright {
namespace {

constexpr double kZeros = 6;
constexpr double kRollOff = 0.99;

/// cos^2 over the width of the zeros, times sinc.
double windowed_sinc(double t) {
  if (std::abs(t) >= kZeros) return 0;
  const double window = std::cos(std::numbers::pi * t / (2 * kZeros));
  const double angle = std::numbers::pi * t;
  return (t == 0 ? 1 : std::sin(angle) / angle) * window * window;
}

}  // namespace

Result<SincTable> SincTable::create(const RateRatio& ratio) {
  SincTable table;
  const auto a = static_cast<double>(ratio.from);
  const auto b = static_cast<double>(ratio.to);
  const double f = std::min(a, b) * kRollOff;
  table.ratio_ = ratio;
  table.side_ = static_cast<std::int64_t>(std::ceil(kZeros * a / f));
  const auto taps = static_cast<std::uint64_t>(2 * table.side_ + 2);
  if (ratio.to > kMostWeights / taps) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("resampler \"sinc\" from {} samples to {} takes {} times {} weights; "
                             "allowed: {} in all; resampler \"soxr\" does any ratio",
                             ratio.from, ratio.to, ratio.to, taps, kMostWeights)};
  }
  for (std::uint64_t phase = 0; phase < ratio.to; ++phase) {
    const auto below = static_cast<double>(phase * ratio.from / ratio.to);
    const double place = static_cast<double>(phase) / b;
    for (std::int64_t i = -table.side_; i <= table.side_ + 1; ++i) {
      const double t = ((below + static_cast<double>(i)) / a - place) * f;
      table.weights_.push_back(f / a * windowed_sinc(t));
    }
  }
  return table;
}

void SincTable::resample(std::span<const float> sound, std::span<float> out) const {
  const auto size = static_cast<std::int64_t>(sound.size());
  const std::int64_t taps = 2 * side_ + 2;
  std::uint64_t phase = 0;
  std::uint64_t period = 0;  // where phase 0 lies
  for (float& each : out) {
    const std::uint64_t place = period + phase * ratio_.from / ratio_.to;
    const std::int64_t first = static_cast<std::int64_t>(place) - side_;
    const double* const weights = weights_.data() + static_cast<std::int64_t>(phase) * taps;
    const std::int64_t begin = std::max(std::int64_t{0}, -first);
    const std::int64_t end = std::min(taps, size - first);
    double sum = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      sum += weights[i] * static_cast<double>(sound[static_cast<std::size_t>(first + i)]);
    }
    each = static_cast<float>(sum);
    if (++phase == ratio_.to) {
      phase = 0;
      period += ratio_.from;
    }
  }
}

}  // namespace batchwright
