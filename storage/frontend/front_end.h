#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

enum class FeatureKind : std::uint8_t {
  logmel,  ///< Logarithms of mel band energies.
  mfcc,    ///< The first coefficients of their orthonormal DCT-II.
};
enum class WindowShape : std::uint8_t { hamming, hann };

/// The settings by which audio becomes features. The formulae are in README.md.
struct FrontEndOptions {
  FeatureKind features = FeatureKind::logmel;
  double window_ms = 25;  ///< Range: at least 2 samples.
  double hop_ms = 10;     ///< Range: at least 1 sample.
  WindowShape window = WindowShape::hamming;
  /// Points, at least the window, a product of 2, 3, 4 and 5; 0: the next power of two.
  std::uint32_t fft_size = 0;
  std::uint32_t mel_bands = 40;
  double fmin_hz = 20;
  double fmax_hz = 0;          ///< At most half the sample rate; 0: half the sample rate.
  double pre_emphasis = 0.97;  ///< Range: 0 (off) up to, but not, 1.
  double log_floor = 1e-10;    ///< Energies below it are raised to it. Range: above 0.
  std::uint32_t cepstra = 13;  ///< Coefficients of mfcc. Range: 1 to mel_bands.
};

/// Features of audio of one sample rate.
///
/// All but the result is in double precision: in single precision the FFT's rounding of a loud
/// tone drowns the quiet bands beside it.
/// Threads: any number at once.
class FrontEnd {
 public:
  /// Errors: invalid_argument, naming the option, what was found and what is allowed.
  static Result<FrontEnd> create(const FrontEndOptions& options, std::uint32_t sample_rate);

  FrontEnd(FrontEnd&&) noexcept;
  FrontEnd& operator=(FrontEnd&&) noexcept;
  ~FrontEnd();

  std::uint32_t sample_rate() const;  ///< Hz
  std::uint32_t dimensions() const;   ///< Values of one frame.

  /// Frames of that many samples: 1 + floor((samples - window) / hop), and one when there are
  /// fewer than a window's, 0 when there are none.
  std::size_t frames(std::size_t samples) const;

  /// [frames, dimensions], row-major. `samples` lie in -1 .. 1.
  std::vector<float> compute(std::span<const float> samples) const;

  /// Every option with the values that zeros stand for, to be kept in a dataset's description.
  std::vector<std::pair<std::string, std::string>> settings() const;

  struct State;  ///< Private to the room; see front_end.cpp.

 private:
  explicit FrontEnd(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace batchwright
