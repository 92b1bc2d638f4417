#pragma once

#include <cstddef>
#include <vector>

#include "storage/features/frontend/spectrum/frame_kernel.h"

namespace batchwright {

/// Zeroed memory for arrays of a FrameKernel, on the boundary of a cache line.
template <class Value>
class FrameMemory {
 public:
  explicit FrameMemory(std::size_t places) : lines_((places + kInLine - 1) / kInLine) {}

  Value* data() { return lines_.data()->values; }

 private:
  static constexpr std::size_t kInLine = 64 / sizeof(Value);
  struct alignas(64) Line {
    Value values[kInLine] = {};
  };
  std::vector<Line> lines_;
};

}  // namespace batchwright
