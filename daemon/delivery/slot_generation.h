#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/assembly/assembly.h"

namespace batchwright {

/// What one delivery of the batch in a slot adds to the counters.
struct DeliveredFigures {
  std::uint32_t rows = 0;
  std::uint64_t frames = 0;
  std::uint64_t padded_frames = 0;
  std::uint64_t deliveries = 0;  ///< So far.
};

/// An arena of a feed, and the batches in it. A dataset that grows may need larger slots: then
/// another generation takes its place, and this one lives until its last batch is given back.
struct SlotGeneration {
  SlotGeneration(std::uint32_t arena_number, std::unique_ptr<Arena> memory)
      : number(arena_number),
        arena(std::move(memory)),
        cache(arena->slots()),
        figures(arena->slots()) {}

  std::uint32_t number;  ///< By which clients ask for the arena.
  std::unique_ptr<Arena> arena;
  SlotCache cache;
  std::vector<DeliveredFigures> figures;  ///< Per slot, of the batch in it.
};

/// A slot of one generation, which it keeps alive.
struct SlotRef {
  std::shared_ptr<SlotGeneration> of;
  SlotIndex index;
};

}  // namespace batchwright
