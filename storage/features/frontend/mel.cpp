#include "storage/features/frontend/mel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace batchwright {
namespace {

/// Slaney's scale: 15 mel below 1 kHz, then 27 for each factor of 6.4.
constexpr double kSlaneyKnee = 1000;
constexpr double kSlaneyMel = 15;

/// One band: where its triangle begins, has its top and ends.
struct Corners {
  double left;
  double top;
  double right;

  double weight(double place) const {
    const double rise = (place - left) / (top - left);
    const double fall = (right - place) / (right - top);
    return std::max(0.0, std::min(rise, fall));
  }
};

}  // namespace

double mel_of_hz(MelScale scale, double hz) {
  if (scale == MelScale::htk) return 1127.0 * std::log(1.0 + hz / 700.0);
  if (hz < kSlaneyKnee) return 3 * hz / 200;
  return kSlaneyMel + 27 * std::log(hz / kSlaneyKnee) / std::log(6.4);
}

double hz_of_mel(MelScale scale, double mel) {
  if (scale == MelScale::htk) return 700.0 * (std::exp(mel / 1127.0) - 1.0);
  if (mel < kSlaneyMel) return 200 * mel / 3;
  return kSlaneyKnee * std::exp((mel - kSlaneyMel) * std::log(6.4) / 27);
}

Result<MelFilters> MelFilters::create(const MelSpec& spec) {
  const double lowest = mel_of_hz(spec.scale, spec.fmin_hz);
  const double step = (mel_of_hz(spec.scale, spec.fmax_hz) - lowest) / (spec.bands + 1);
  const double bin_hz = static_cast<double>(spec.sample_rate) / spec.fft_size;
  const auto corner = [&](std::uint32_t i) { return lowest + step * i; };
  // In the measure in which sides are straight.
  std::vector<double> bin_places;
  for (std::size_t bin = 0; bin <= spec.fft_size / 2; ++bin) {
    const double hz = static_cast<double>(bin) * bin_hz;
    bin_places.push_back(spec.sides == MelSides::hz ? hz : mel_of_hz(spec.scale, hz));
  }
  const auto corner_place = [&](std::uint32_t i) {
    return spec.sides == MelSides::hz ? hz_of_mel(spec.scale, corner(i)) : corner(i);
  };
  MelFilters filters;
  std::vector<std::size_t> first_weights;
  for (std::uint32_t b = 0; b < spec.bands; ++b) {
    const Corners corners{corner_place(b), corner_place(b + 1), corner_place(b + 2)};
    const double width = hz_of_mel(spec.scale, corner(b + 2)) - hz_of_mel(spec.scale, corner(b));
    const double height = spec.equal_area ? 2 / width : 1;
    BandWeights band;
    first_weights.push_back(filters.weights_.size());
    // Only bins between its ends: all of them for each of 4,096 bands would take seconds.
    const auto begin = std::upper_bound(bin_places.begin(), bin_places.end(), corners.left);
    const auto end = std::lower_bound(begin, bin_places.end(), corners.right);
    for (auto bin = static_cast<std::size_t>(begin - bin_places.begin());
         bin < static_cast<std::size_t>(end - bin_places.begin()); ++bin) {
      const double weight = corners.weight(bin_places[bin]);
      // Weights above 0 are neighbours, so a first bin and a count describe the band.
      if (weight <= 0) continue;
      if (band.bins++ == 0) band.first_bin = bin;
      filters.weights_.push_back(weight * height);
    }
    if (band.bins == 0 && !spec.empty_bands) {
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("mel band {} around {:f} Hz holds no FFT bin (bins are {:f} Hz apart): "
                      "fewer mel bands or a larger FFT are needed",
                      b, hz_of_mel(spec.scale, corner(b + 1)), bin_hz)};
    }
    filters.bands_.push_back(band);
  }
  // Only now do the weights stay where they are.
  for (std::size_t b = 0; b < filters.bands_.size(); ++b) {
    filters.bands_[b].weights = filters.weights_.data() + first_weights[b];
  }
  return filters;
}

std::vector<double> dct_rows(std::size_t cepstra, std::size_t bands) {
  std::vector<double> rows(cepstra * bands);
  const double n = static_cast<double>(bands);
  for (std::size_t k = 0; k < cepstra; ++k) {
    // Makes the rows orthonormal (DEFINITIONS.md).
    const double scale = std::sqrt((k == 0 ? 1.0 : 2.0) / n);
    for (std::size_t b = 0; b < bands; ++b) {
      rows[k * bands + b] = scale * std::cos(std::numbers::pi * static_cast<double>(k) *
                                             (static_cast<double>(b) + 0.5) / n);
    }
  }
  return rows;
}

}  // namespace batchwright
