#pragma once

#include <cstddef>
#include <vector>

#include "storage/frontend/spectrum/frame_kernel.h"

namespace batchwright {

/// Zeroed memory for arrays of a FrameKernel, on the boundary of a cache line.
class FrameMemory {
 public:
  explicit FrameMemory(std::size_t places) : lines_((places + kFrameLanes - 1) / kFrameLanes) {}

  double* data() { return lines_.data()->values; }

 private:
  struct alignas(kFrameLanes * sizeof(double)) Line {
    double values[kFrameLanes] = {};
  };
  std::vector<Line> lines_;
};

}  // namespace batchwright
