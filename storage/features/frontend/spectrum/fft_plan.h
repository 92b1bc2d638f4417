#pragma once

#include <cstdint>
#include <vector>

#include "formats/formats.h"
#include "storage/features/frontend/spectrum/frame_kernel.h"

namespace batchwright {

/// What any transform has at most.
inline constexpr std::uint32_t kMaxFftPoints = 1U << 20;

/// The steps and factors of a transform of real frames of double or float.
/// Immutable. Threads: any.
template <class Value>
class FftPlan {
 public:
  /// Errors: invalid_argument: `points` is 0, above kMaxFftPoints, or no product of 2, 3, 4 and 5.
  static Result<FftPlan> create(std::uint32_t points);

  FftPlan(FftPlan&&) = default;
  FftPlan& operator=(FftPlan&&) = default;

  const FftTables<Value>& tables() const { return tables_; }
  /// Places of FrameKernel::power()'s scratch.
  std::size_t scratch() const {
    // Half as many complex points; of an odd number two arrays of them all.
    return (tables_.roots != nullptr ? 1 : 4) * kFrameLanes * tables_.points;
  }

 private:
  FftPlan() = default;

  FftTables<Value> tables_;
  std::vector<FftStep<Value>> steps_;
  std::vector<std::vector<Value>> twiddles_;  // of each step
  std::vector<Value> roots_;
};

extern template class FftPlan<double>;
extern template class FftPlan<float>;

}  // namespace batchwright
