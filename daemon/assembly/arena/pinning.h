#pragma once

#include <cstddef>
#include <span>

#include "daemon/assembly/arena/arena.h"

namespace batchwright {

/// Keeps `memory` in RAM: registered with the GPU if one answers, otherwise locked, otherwise left
/// as it is. Says which of them it became; none of them is an error.
PinState pin(std::span<std::byte> memory);

/// Undoes what pin() did.
void unpin(std::span<std::byte> memory, PinState state);

/// Page-locks `memory` for every GPU of this machine. False when there is no GPU, no driver, or
/// no CUDA in this build. cuda_pinning.cpp or no_cuda_pinning.cpp, as the build has it.
bool register_with_gpu(std::span<std::byte> memory);
void unregister_from_gpu(std::span<std::byte> memory);

}  // namespace batchwright
