// Stands in for cuda_pinning.cpp in a build without CUDA.

#include "daemon/assembly/arena/pinning.h"

namespace batchwright {

bool built_with_cuda() { return false; }
bool register_with_gpu(std::span<std::byte>) { return false; }
void unregister_from_gpu(std::span<std::byte>) {}

}  // namespace batchwright
