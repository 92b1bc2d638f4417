#include "storage/features/frontend/spectrum/frame_kernel.h"

namespace batchwright {

extern const FrameKernel kPlainFrames;
#if defined(__x86_64__) && !defined(BATCHWRIGHT_MINIMAL)
extern const FrameKernel kAvx2Frames;
extern const FrameKernel kAvx512Frames;
#endif

std::size_t frame_kernels(const FrameKernel* (&kernels)[3]) {
  std::size_t count = 0;
  kernels[count++] = &kPlainFrames;
#if defined(__x86_64__) && !defined(BATCHWRIGHT_MINIMAL)
  if (__builtin_cpu_supports("avx2")) kernels[count++] = &kAvx2Frames;
  if (__builtin_cpu_supports("avx512f")) kernels[count++] = &kAvx512Frames;
#endif
  return count;
}

const FrameKernel& frame_kernel() {
  static const FrameKernel& chosen = []() -> const FrameKernel& {
    const FrameKernel* kernels[3];
    return *kernels[frame_kernels(kernels) - 1];
  }();
  return chosen;
}

}  // namespace batchwright
