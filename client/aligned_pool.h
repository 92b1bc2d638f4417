#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "client/payload.h"

namespace batchwright {

/// Memory for batches that came as messages: each is copied to where its tensors lie aligned.
/// What is given back serves the next batch, because a copy into pages that were touched before
/// is several times as fast. A pool has as many blocks as were held at once.
/// Lifetime: a payload keeps its memory, also beyond the pool's end. Threads: copy() one at a
/// time; payloads go in any.
class AlignedPool {
 public:
  AlignedPool();

  /// A copy of `bytes`, at a multiple of kTensorAlignment.
  Payload copy(std::span<const std::byte> bytes);

 private:
  class Idle;
  class Held;
  std::shared_ptr<Idle> idle_;
};

}  // namespace batchwright
