// The one file that includes CUDA. The runtime is linked statically and finds the driver by
// itself, so the program also starts where there is none.

#include <cuda_runtime_api.h>

#include "daemon/assembly/arena/pinning.h"

namespace batchwright {

bool built_with_cuda() { return true; }

bool register_with_gpu(std::span<std::byte> memory) {
  // Without a driver every call fails at once and leaves its outputs untouched.
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return false;
  return cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable) == cudaSuccess;
}

void unregister_from_gpu(std::span<std::byte> memory) { cudaHostUnregister(memory.data()); }

}  // namespace batchwright
