#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "daemon/delivery/feed/core/feed_core.h"
#include "tests/simulation/daemon/data.h"
#include "tests/simulation/world/seam.h"
#include "tests/simulation/world/world.h"

namespace batchwright::simulation {

/// Sees which slots programs hold batches in, and fails the run where the daemon writes to one of
/// them, where a batch is not that of its place, and where the core has lost count.
class SlotWitness {
 public:
  SlotWitness(World& world, Data& data) : world_(world), data_(data) {}

  void arena_made(const Arena& arena);
  void arena_mapped(const std::byte* mapping, int descriptor);
  /// A slot is about to be written.
  void written(const Arena& arena, SlotIndex slot) const;
  /// A batch of a dataset says which it is, in the bytes that the program reads: these are the
  /// plan's.
  void check_content(const Holding& batch) const;
  /// A program has a batch, and has it no longer.
  void taken(const Holding& batch);
  void let_go(const Holding& batch);

  /// After each event and each turn. `sends`: slots whose batches are on their way.
  using Sends = std::multimap<const SlotGeneration*, SlotIndex>;
  void check(const FeedCore& core, const Sends& sends) const;

 private:
  using Place = std::pair<std::uint64_t, std::uint64_t>;  ///< A file's number, and a slot of it.

  Place place_of(const Holding& batch) const;

  World& world_;
  Data& data_;
  std::map<const void*, std::uint64_t> mapped_;      ///< The file by a mapping's first byte.
  std::map<std::uint64_t, std::size_t> slot_bytes_;  ///< By file.
  std::map<Place, std::uint32_t> held_;
};

}  // namespace batchwright::simulation
