#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/formats.h"
#include "storage/features/frontend/options.h"
#include "storage/features/frontend/spectrum/frame_kernel.h"

namespace batchwright {

/// The mel scale of the HTK Book, 1127 ln(1 + f / 700), or Slaney's (Auditory Toolbox), straight
/// below 1 kHz; and back.
double mel_of_hz(MelScale scale, double hz);
double hz_of_mel(MelScale scale, double mel);

/// The parameters of a mel filter bank. All values are checked.
struct MelSpec {
  std::uint32_t bands = 0;
  std::uint32_t fft_size = 0;
  std::uint32_t sample_rate = 0;  ///< Hz
  double fmin_hz = 0;
  double fmax_hz = 0;
  MelScale scale = MelScale::htk;
  MelSides sides = MelSides::mel;
  bool equal_area = false;
  bool empty_bands = false;  ///< A band without a bin has no energy, or is refused.
};

/// Triangles whose corners are equally far apart in mel, each reaching to its neighbours' tops.
/// Immutable. Threads: any.
class MelFilters {
 public:
  /// Errors: invalid_argument when a band is so narrow that no FFT bin lies in it, and may not be.
  static Result<MelFilters> create(const MelSpec& spec);

  MelFilters(MelFilters&&) = default;
  MelFilters& operator=(MelFilters&&) = default;

  /// For FrameKernel::weigh(), valid as long as this object.
  std::span<const BandWeights> bands() const { return bands_; }

 private:
  MelFilters() = default;

  std::vector<BandWeights> bands_;
  std::vector<double> weights_;  // of all bands, one after the other
};

/// Rows 0 .. `cepstra`-1 of the orthonormal DCT-II over `bands` points, row-major.
std::vector<double> dct_rows(std::size_t cepstra, std::size_t bands);

}  // namespace batchwright
