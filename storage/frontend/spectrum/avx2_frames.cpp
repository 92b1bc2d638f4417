#include "storage/frontend/spectrum/frame_loops.h"

namespace batchwright {

extern const FrameKernel kAvx2Frames;
const FrameKernel kAvx2Frames{"avx2", cut_frames, power_of, roots_of, weigh_bands, logs_of};

}  // namespace batchwright
