#include "daemon/assembly/arena/pinning.h"

#include <sys/mman.h>

namespace batchwright {

std::string_view to_string(PinState state) {
  switch (state) {
    case PinState::none: return "none";
    case PinState::locked: return "locked";
    case PinState::cuda: return "cuda";
  }
  return "unknown";
}

PinState pin(std::span<std::byte> memory) {
  if (register_with_gpu(memory)) return PinState::cuda;
  // Fails beyond RLIMIT_MEMLOCK, which is not raisable everywhere.
  if (::mlock(memory.data(), memory.size()) == 0) return PinState::locked;
  return PinState::none;
}

void unpin(std::span<std::byte> memory, PinState state) {
  // A lock ends with the mapping; only the driver needs a call.
  if (state == PinState::cuda) unregister_from_gpu(memory);
}

}  // namespace batchwright
