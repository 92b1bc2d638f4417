#include "storage/features/frontend/plp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "storage/features/frontend/mel.h"
#include "storage/features/frontend/spectrum/frame_kernel.h"

namespace batchwright {
namespace {

/// Kaldi's least residual energy, 2^-23, and what is left of the error at a step at least.
constexpr double kLeastResidual = std::numeric_limits<float>::epsilon();
constexpr double kLeastShare = 1e-5;

/// Hermansky's curve of equal loudness at 40 dB, as HTK and Kaldi have it: without its last term.
double equal_loudness(double hz) {
  const double square = hz * hz;
  const double low = square / (square + 1.6e5);
  return low * low * (square + 1.44e6) / (square + 9.61e6);
}

/// Levinson's and Durbin's recursion: the coefficients a of the predictor, 1 + a(1) z^-1 + ..., of
/// these autocorrelations, and the energy of the error. Both lengths are at most kMostLpcOrder + 1.
double predictor_of(std::span<const double> correlations, std::span<double> a) {
  std::array<double, kMostLpcOrder> before{};
  double error = correlations[0];
  for (std::size_t i = 0; i < a.size(); ++i) {
    double sum = correlations[i + 1];
    for (std::size_t j = 0; j < i; ++j) sum += a[j] * correlations[i - j];
    const double reflection = sum / error;
    // A constant spectrum is predicted in full, except for rounding.
    error *= std::max(1 - reflection * reflection, kLeastShare);
    std::copy_n(a.begin(), i, before.begin());
    a[i] = -reflection;
    for (std::size_t j = 0; j < i; ++j) a[j] = before[j] - reflection * before[i - 1 - j];
  }
  return error;
}

}  // namespace

PlpCepstra::PlpCepstra(const FrontEndOptions& options, const FrameMeasures& measures)
    : order_(options.lpc_order), compression_(options.compress_factor) {
  const std::size_t bands = options.mel_bands;
  const double lowest = mel_of_hz(options.scale, options.fmin_hz);
  const double step =
      (mel_of_hz(options.scale, measures.fmax_hz) - lowest) / static_cast<double>(bands + 1);
  for (std::size_t b = 0; b < bands; ++b) {
    const double centre = hz_of_mel(options.scale, lowest + step * static_cast<double>(b + 1));
    loudness_.push_back(std::log(equal_loudness(centre)));
  }
  // The bands are the inner ones of bands + 2 points of a spectrum from 0 to pi, whose first and
  // last are as its second and its last but one. It is even, so that cosines give the correlations.
  const double points = static_cast<double>(bands + 1);
  for (std::size_t i = 0; i <= order_; ++i) {
    const auto wave = [&](std::size_t j) {
      return std::cos(std::numbers::pi * static_cast<double>(i * j) / points) / (2 * points);
    };
    for (std::size_t b = 0; b < bands; ++b) cosines_.push_back(2 * wave(b + 1));
    cosines_[i * bands] += wave(0);
    cosines_[i * bands + bands - 1] += wave(bands + 1);
  }
  for (std::size_t m = 0; m < options.cepstra; ++m) {
    lifter_.push_back(lifter_of(options, m) * options.cepstral_scale);
  }
}

void PlpCepstra::compute_one(std::span<const double> logs, std::span<double> cepstra) const {
  std::array<double, kMostLpcOrder + 1> correlations{};
  const std::size_t bands = loudness_.size();
  for (std::size_t b = 0; b < bands; ++b) {
    const double heard = std::exp(compression_ * (logs[b] + loudness_[b]));
    for (std::size_t i = 0; i <= order_; ++i) correlations[i] += cosines_[i * bands + b] * heard;
  }
  std::array<double, kMostLpcOrder> a{};
  const double error =
      predictor_of(std::span(correlations).first(order_ + 1), std::span(a).first(order_));
  cepstra[0] = std::log(std::max(error, kLeastResidual));
  // Of 1 / A: n c(n) = -n a(n) - sum over k < n of (n - k) a(k) c(n - k).
  for (std::size_t n = 1; n < cepstra.size(); ++n) {
    double sum = 0;
    for (std::size_t k = 1; k < n; ++k)
      sum += static_cast<double>(n - k) * a[k - 1] * cepstra[n - k];
    cepstra[n] = -a[n - 1] - sum / static_cast<double>(n);
  }
  for (std::size_t m = 0; m < cepstra.size(); ++m) cepstra[m] *= lifter_[m];
}

void PlpCepstra::compute(const double* logs, double* out) const {
  const std::size_t bands = loudness_.size();
  std::vector<double> frame(bands);
  std::array<double, kMostLpcOrder + 1> cepstra{};
  for (std::size_t lane = 0; lane < kFrameLanes; ++lane) {
    for (std::size_t b = 0; b < bands; ++b) frame[b] = logs[b * kFrameLanes + lane];
    compute_one(frame, std::span(cepstra).first(lifter_.size()));
    for (std::size_t m = 0; m < lifter_.size(); ++m) out[m * kFrameLanes + lane] = cepstra[m];
  }
}

}  // namespace batchwright
