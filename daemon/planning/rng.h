#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "formats/formats.h"

namespace batchwright {

/// The stages that draw, each from a stream of its own, so that what one stage draws never moves
/// the draws of another. The numbers are part of every plan: append, never renumber.
enum class Stream : std::uint64_t {
  select = 1,    ///< The sequences that an epoch uses.
  order = 2,     ///< The part of the order, of random and alternated.
  noise = 3,     ///< The noise of semi-sorted.
  ties = 4,      ///< The order of sequences with equal keys.
  bucket = 5,    ///< The order within a bucket.
  draw = 6,      ///< The order in which buckets' spans are drawn.
  batches = 7,   ///< The permutation of finished batches.
  groups = 8,    ///< The permutation of groups, and of the batches within each.
  ranks = 9,     ///< The batches of a live step over the ranks; the step is the epoch.
  uniform = 10,  ///< The sequences of a live step, of select = uniform.
};

/// The stream of one stage, specified in DEFINITIONS.md.
class RandomStream : public SplitMix64 {
 public:
  RandomStream(std::uint64_t seed_plus_epoch, Stream stream)
      : SplitMix64(mix64(mix64(seed_plus_epoch) + static_cast<std::uint64_t>(stream))) {}

  /// The value that bits32() gives `index` draws from here.
  std::uint32_t bits32_at(std::uint64_t index) const {
    return static_cast<std::uint32_t>(next_at(index) >> 32);
  }
};

/// A uniform permutation in place: Fisher and Yates, from the last element down to the second.
template <class T>
void permute(std::span<T> values, RandomStream& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[random.below(i)]);
  }
}

}  // namespace batchwright
