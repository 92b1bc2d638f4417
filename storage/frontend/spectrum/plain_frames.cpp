#include "storage/frontend/spectrum/frame_loops.h"

namespace batchwright {

extern const FrameKernel kPlainFrames;
const FrameKernel kPlainFrames{"plain", cut_frames, power_of, roots_of, weigh_bands, logs_of};

}  // namespace batchwright
