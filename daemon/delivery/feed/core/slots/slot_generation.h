#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "formats/formats.h"

namespace batchwright {

/// The amounts that one delivery of a slot's batch adds to the counters.
struct DeliveredFigures {
  std::uint32_t rows = 0;
  std::uint64_t frames = 0;
  std::uint64_t padded_frames = 0;
  std::uint64_t deliveries = 0;  ///< Deliveries so far.
};

/// An arena of a feed, and the batches in it. A dataset that grows may need larger slots: then
/// another generation takes its place, and this one lives until its last batch is given back.
struct SlotGeneration {
  SlotGeneration(ArenaNumber arena_number, std::unique_ptr<Arena> memory,
                 std::shared_ptr<MemoryBudget> its_budget, std::string its_feed = {})
      : number(arena_number),
        arena(std::move(memory)),
        cache(arena->slots()),
        figures(arena->slots()),
        budget(std::move(its_budget)),
        feed(std::move(its_feed)) {}
  ~SlotGeneration() { budget->give_back(arena->bytes(), feed); }
  SlotGeneration(const SlotGeneration&) = delete;
  SlotGeneration& operator=(const SlotGeneration&) = delete;

  ArenaNumber number;  ///< The arena's number, by which clients request it.
  std::unique_ptr<Arena> arena;
  SlotCache cache;
  std::vector<DeliveredFigures> figures;  ///< Figures of the batch in each slot.
  std::shared_ptr<MemoryBudget> budget;   ///< Gets the arena's bytes back.
  std::string feed;                       ///< The name by which they were taken out of it.
};

/// A slot of one generation, which it keeps alive.
struct SlotRef {
  std::shared_ptr<SlotGeneration> of;
  SlotIndex index;
};

}  // namespace batchwright
