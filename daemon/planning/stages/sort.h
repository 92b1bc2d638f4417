#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "daemon/planning/rng.h"
#include "daemon/planning/stages/plan_builder.h"

// Ordering ten million items in less time than std::sort needs for their lengths alone. What
// costs is memory: pages touched for the first time, and look-ups all over it. So keys are
// computed, not stored: one pass counts the items by the part of the order they belong to, a
// second puts their words there, and each part, which fits the cache, is finished on its own.

namespace batchwright {

inline constexpr int kPartBits = 10;

/// The part of the order that a key of 32 bits belongs to.
inline std::uint32_t part_of(std::uint32_t key) { return key >> (32 - kPartBits); }

/// Sorts words by key alone, ascending; equal keys stay in order. Where `spare` has fewer words, it
/// sorts pieces as large as that, and merges each with all before it.
void stable_sort_by_key(std::span<std::uint64_t> words, std::span<std::uint64_t> spare);

/// Puts runs of words with equal keys into a uniformly random order, first run first.
void permute_ties(std::span<std::uint64_t> words, RandomStream& random);

struct Placed {
  std::uint32_t part;
  std::uint64_t word;
};

/// The parts of an order, each with its end.
struct Parts {
  std::array<std::size_t, (1 << kPartBits)> ends{};
  std::size_t largest = 0;

  /// Calls `finish(words)` with the words of each part in turn.
  template <class Finish>
  void each(std::span<std::uint64_t> words, const Finish& finish) const {
    std::size_t start = 0;
    for (const std::size_t end : ends) {
      finish(words.subspan(start, end - start));
      start = end;
    }
  }
};

/// Fills builder.order with the word of each item used, by part; within a part the items stay in
/// order. `place(i, item, length)` gives the part and word of the i-th; it is called twice.
template <class Place>
Parts order_by_parts(PlanBuilder& builder, const Place& place) {
  Parts parts;
  builder.each_item([&](std::uint32_t i, std::uint32_t item, std::uint32_t length) {
    ++parts.ends[place(i, item, length).part];
  });
  std::size_t start = 0;
  for (std::size_t& end : parts.ends) {
    parts.largest = std::max(parts.largest, end);
    start += std::exchange(end, start);
  }
  builder.order = WordBuffer(builder.rows);
  std::uint64_t* const words = builder.order.words().data();
  builder.each_item([&](std::uint32_t i, std::uint32_t item, std::uint32_t length) {
    const Placed placed = place(i, item, length);
    words[parts.ends[placed.part]++] = placed.word;  // each start moves on to its part's end
  });
  std::vector<std::uint64_t>().swap(builder.drawn);
  return parts;
}

}  // namespace batchwright
