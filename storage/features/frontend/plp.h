#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/features/frontend/framing.h"
#include "storage/features/frontend/options.h"

namespace batchwright {

/// Perceptual linear prediction (Hermansky 1990) as Kaldi has it: cepstra of the all-pole model of
/// band energies that are weighted by equal loudness and compressed. The formulae are in
/// DEFINITIONS.md. Immutable. Threads: any.
class PlpCepstra {
 public:
  PlpCepstra(const FrontEndOptions& options, const FrameMeasures& measures);

  std::size_t cepstra() const { return lifter_.size(); }

  /// Cepstra [cepstra][kFrameLanes] of logarithms of band energies [bands][kFrameLanes].
  void compute(const double* logs, double* out) const;

 private:
  void compute_one(std::span<const double> logs, std::span<double> cepstra) const;

  std::size_t order_;
  double compression_;
  std::vector<double> loudness_;  // logarithm of equal loudness, of each band
  std::vector<double> cosines_;   // [order + 1][bands]: the inverse transform, ends counted twice
  std::vector<double> lifter_;    // of each cepstrum, scale included
};

}  // namespace batchwright
