#pragma once

#include <cstdint>
#include <vector>

#include "formats/formats.h"
#include "storage/frontend/spectrum/frame_kernel.h"

namespace batchwright {

/// The steps and factors of a transform of real frames.
/// Immutable. Threads: any.
class FftPlan {
 public:
  static constexpr std::uint32_t kMaxPoints = 1U << 20;

  /// Errors: invalid_argument: `points` is 0, above kMaxPoints, or no product of 2, 3, 4 and 5.
  static Result<FftPlan> create(std::uint32_t points);

  FftPlan(FftPlan&&) = default;
  FftPlan& operator=(FftPlan&&) = default;

  const FftTables& tables() const { return tables_; }
  /// Places of FrameKernel::power()'s scratch.
  std::size_t scratch() const {
    // Half as many complex points; of an odd number two arrays of them all.
    return (tables_.roots != nullptr ? 1 : 4) * kFrameLanes * tables_.points;
  }

 private:
  FftPlan() = default;

  FftTables tables_;
  std::vector<FftStep> steps_;
  std::vector<std::vector<double>> twiddles_;  // of each step
  std::vector<double> roots_;
};

}  // namespace batchwright
