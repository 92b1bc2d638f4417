// Stands in for cuda_pinning.cpp in a build without CUDA.

#include "daemon/assembly/pinning.h"

namespace batchwright {

bool register_with_gpu(std::span<std::byte>) { return false; }
void unregister_from_gpu(std::span<std::byte>) {}

}  // namespace batchwright
