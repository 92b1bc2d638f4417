#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "daemon/planning/rng.h"

// Sorting ten million items by a 32-bit key in less time than std::sort needs for the keys alone.
// The keys are computed, not stored: one pass counts them by their upper bits, a second puts words
// of (key, item) into parts that fit the cache, and each part is sorted there byte by byte.

namespace batchwright {

/// Sorts words of (key << 32 | item) by key alone, ascending; equal keys stay in order.
/// `spare` has as many words.
void stable_sort_by_key(std::span<std::uint64_t> words, std::span<std::uint64_t> spare);

/// Puts runs of words with equal keys into a uniformly random order, first run first.
void permute_ties(std::span<std::uint64_t> words, RandomStream& random);

inline std::uint64_t key_word(std::uint32_t key, std::uint32_t item) {
  return (std::uint64_t{key} << 32) | item;
}

/// Sorts `items` by key, ascending; equal keys stay in order, or are permuted if `ties` is given.
/// `make_key()` gives a function item -> key that is called once for each item in order; two of
/// them must agree.
/// Memory: 8 bytes an item and at most 4 more beside `items`, or 16 bytes an item in all.
template <class MakeKey>
void sort_items(std::vector<std::uint32_t>& items, const MakeKey& make_key, RandomStream* ties) {
  constexpr int kShift = 32 - 11;
  const std::size_t count = items.size();
  std::array<std::size_t, (1 << 11) + 1> ends{};
  {
    auto key = make_key();
    for (const std::uint32_t item : items) ++ends[(key(item) >> kShift) + 1];
  }
  const std::size_t largest = *std::max_element(ends.begin(), ends.end());
  for (std::size_t part = 1; part < ends.size(); ++part) ends[part] += ends[part - 1];

  const auto words = std::make_unique_for_overwrite<std::uint64_t[]>(count);
  {
    auto key = make_key();
    for (const std::uint32_t item : items) {
      const std::uint32_t k = key(item);
      words[ends[k >> kShift]++] = key_word(k, item);  // each start moves on to its part's end
    }
  }
  const bool skewed = largest > count / 2;
  if (skewed) std::vector<std::uint32_t>().swap(items);
  auto spare = std::make_unique_for_overwrite<std::uint64_t[]>(largest);
  std::size_t start = 0;
  for (std::size_t part = 0; part + 1 < ends.size(); ++part) {
    const std::span<std::uint64_t> here(&words[start], ends[part] - start);
    stable_sort_by_key(here, {spare.get(), here.size()});
    if (ties != nullptr) permute_ties(here, *ties);
    start = ends[part];
  }
  spare.reset();
  items.resize(count);
  for (std::size_t i = 0; i < count; ++i) items[i] = static_cast<std::uint32_t>(words[i]);
}

}  // namespace batchwright
