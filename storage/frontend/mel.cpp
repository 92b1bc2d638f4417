#include "storage/frontend/mel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace batchwright {
namespace {

/// Weight of a frequency in the triangle over left, top, right; all in mel.
double triangle(double mel, double top, double half_width) {
  return std::max(0.0, 1.0 - std::abs(mel - top) / half_width);
}

}  // namespace

// The scale of the HTK Book: 1000 Hz are 1000 mel.
double mel_of_hz(double hz) { return 2595.0 * std::log10(1.0 + hz / 700.0); }

double hz_of_mel(double mel) { return 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0); }

Result<MelFilters> MelFilters::create(const MelSpec& spec) {
  const double lowest = mel_of_hz(spec.fmin_hz);
  // The bands' tops divide the range evenly in mel, and each reaches to its neighbours' tops.
  const double half_width = (mel_of_hz(spec.fmax_hz) - lowest) / (spec.bands + 1);
  const double bin_hz = static_cast<double>(spec.sample_rate) / spec.fft_size;
  MelFilters filters;
  std::vector<std::size_t> first_weights;
  for (std::uint32_t b = 0; b < spec.bands; ++b) {
    const double top = lowest + half_width * (b + 1);
    BandWeights band;
    first_weights.push_back(filters.weights_.size());
    for (std::size_t bin = 0; bin <= spec.fft_size / 2; ++bin) {
      const double weight = triangle(mel_of_hz(static_cast<double>(bin) * bin_hz), top, half_width);
      // Weights above 0 are neighbours, so a first bin and a count describe the band.
      if (weight <= 0) continue;
      if (band.bins++ == 0) band.first_bin = bin;
      filters.weights_.push_back(weight);
    }
    if (band.bins == 0) {
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("mel band {} around {:f} Hz holds no FFT bin (bins are {:f} Hz apart): "
                      "fewer mel bands or a larger FFT are needed",
                      b, hz_of_mel(top), bin_hz)};
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
    // Makes the rows orthonormal (README.md).
    const double scale = std::sqrt((k == 0 ? 1.0 : 2.0) / n);
    for (std::size_t b = 0; b < bands; ++b) {
      rows[k * bands + b] = scale * std::cos(std::numbers::pi * static_cast<double>(k) *
                                             (static_cast<double>(b) + 0.5) / n);
    }
  }
  return rows;
}

}  // namespace batchwright
