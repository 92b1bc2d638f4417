#include "storage/features/frontend/spectrum/convolution_loops.h"

namespace batchwright {

extern const FrameKernel kPlainFrames;
const FrameKernel kPlainFrames{"plain",    widen_samples, cut_frames, power_of,
                               roots_of,   weigh_bands,   logs_of,    transform_of,
                               inverse_of, filter_columns};

}  // namespace batchwright
