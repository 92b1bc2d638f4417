#include "storage/features/sound/sinc_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace batchwright {
namespace {

constexpr double kZeros = 6;
constexpr double kRollOff = 0.99;

/// Products that are summed side by side, in an order that no processor's instructions change.
constexpr std::int64_t kSincLanes = 4;
/// Two of them, which every processor adds at once.
using SincPair = double __attribute__((vector_size(2 * sizeof(double))));

/// Samples that become doubles at a time, at least: they lie in the nearest cache.
constexpr std::int64_t kPieceSamples = 1024;

SincPair load_pair(const double* at) {
  SincPair pair;
  std::memcpy(&pair, at, sizeof pair);
  return pair;
}

/// The sum over `taps`, a multiple of kSincLanes, of weights and samples.
double weighed(const double* weights, const double* samples, std::int64_t taps) {
  SincPair low{};
  SincPair high{};
  for (std::int64_t i = 0; i < taps; i += kSincLanes) {
    low += load_pair(weights + i) * load_pair(samples + i);
    high += load_pair(weights + i + 2) * load_pair(samples + i + 2);
  }
  const SincPair sums = low + high;
  return sums[0] + sums[1];
}

/// Samples of a sound as doubles, and zeros outside of it.
class SincPiece {
 public:
  /// `count` is how many are asked for at once.
  SincPiece(std::span<const float> sound, std::int64_t count)
      : sound_(sound),
        size_(static_cast<std::int64_t>(sound.size())),
        count_(count),
        samples_(static_cast<std::size_t>(std::max(kPieceSamples, 4 * count))) {
    read(-count);
  }

  /// Those from `first` on, until the next call.
  const double* from(std::int64_t first) {
    if (first < first_ || first + count_ > first_ + static_cast<std::int64_t>(samples_.size())) {
      read(first);
    }
    return samples_.data() + (first - first_);
  }

 private:
  void read(std::int64_t first) {
    first_ = first;
    const auto end = first + static_cast<std::int64_t>(samples_.size());
    const std::int64_t sound_begins = std::clamp(std::int64_t{0}, first, end);
    const std::int64_t sound_ends = std::clamp(size_, sound_begins, end);
    const auto place = [&](std::int64_t sample) { return samples_.begin() + (sample - first); };
    std::fill(samples_.begin(), place(sound_begins), 0.0);
    std::copy_n(sound_.begin() + std::min(sound_begins, size_), sound_ends - sound_begins,
                place(sound_begins));
    std::fill(place(sound_ends), samples_.end(), 0.0);
  }

  std::span<const float> sound_;
  std::int64_t size_;
  std::int64_t count_;
  std::int64_t first_ = 0;
  std::vector<double> samples_;
};

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
  // Up to kSincLanes - 1 of weight 0 make them whole lanes.
  table.taps_ = (2 * table.side_ + 2 + kSincLanes - 1) / kSincLanes * kSincLanes;
  const auto taps = static_cast<std::uint64_t>(table.taps_);
  if (ratio.to > kMostWeights / taps) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("resampler \"sinc\" from {} samples to {} takes {} times {} weights; "
                             "allowed: {} in all; resampler \"soxr\" does any ratio",
                             ratio.from, ratio.to, ratio.to, taps, kMostWeights)};
  }
  for (std::uint64_t phase = 0; phase < ratio.to; ++phase) {
    const auto below = static_cast<double>(phase * ratio.from / ratio.to);
    const double place = static_cast<double>(phase) / b;
    for (std::int64_t i = -table.side_; i < table.taps_ - table.side_; ++i) {
      const double t = ((below + static_cast<double>(i)) / a - place) * f;
      table.weights_.push_back(f / a * windowed_sinc(t));
    }
  }
  return table;
}

void SincTable::resample(std::span<const float> sound, std::span<float> out) const {
  SincPiece piece(sound, taps_);
  const std::uint64_t whole = ratio_.from / ratio_.to;
  const std::uint64_t rest = ratio_.from % ratio_.to;
  std::uint64_t phase = 0;
  std::uint64_t place = 0;      // phase * from div to, and the periods before
  std::uint64_t remainder = 0;  // phase * from mod to
  for (float& each : out) {
    const double* const weights = weights_.data() + static_cast<std::int64_t>(phase) * taps_;
    const double* const samples = piece.from(static_cast<std::int64_t>(place) - side_);
    each = static_cast<float>(weighed(weights, samples, taps_));
    phase = phase + 1 == ratio_.to ? 0 : phase + 1;
    place += whole;
    remainder += rest;
    if (remainder >= ratio_.to) {
      remainder -= ratio_.to;
      ++place;
    }
  }
}

}  // namespace batchwright
