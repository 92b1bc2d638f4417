#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The mel scale of the HTK Book: 2595 log10(1 + f / 700), and back.
double mel_of_hz(double hz);
double hz_of_mel(double mel);

/// The parameters of a mel filter bank. All values are checked.
struct MelSpec {
  std::uint32_t bands = 0;
  std::uint32_t fft_size = 0;
  std::uint32_t sample_rate = 0;  ///< Hz
  double fmin_hz = 0;
  double fmax_hz = 0;
};

/// Triangles of height 1, linear and equally wide in mel, each reaching to its neighbours' tops.
/// Immutable. Threads: any.
class MelFilters {
 public:
  /// Errors: invalid_argument when a band is so narrow that no FFT bin lies in it.
  static Result<MelFilters> create(const MelSpec& spec);

  std::size_t bands() const { return bands_.size(); }
  /// `power` has fft_size / 2 + 1 bins, `energies` has bands() places.
  void apply(std::span<const double> power, std::span<double> energies) const;

 private:
  struct Band {
    std::size_t first_bin = 0;
    std::size_t first_weight = 0;
    std::size_t bins = 0;
  };
  std::vector<Band> bands_;
  std::vector<double> weights_;  // of all bands, one after the other
};

/// Rows 0 .. `cepstra`-1 of the orthonormal DCT-II over `bands` points, row-major.
std::vector<double> dct_rows(std::size_t cepstra, std::size_t bands);

}  // namespace batchwright
