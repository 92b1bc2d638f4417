#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "formats/formats.h"

namespace batchwright {

/// The stages that draw, each from a stream of its own, so that what one stage draws never moves
/// the draws of another. The numbers are part of every plan: append, never renumber.
enum class Stream : std::uint64_t {
  select = 1,   ///< The sequences that an epoch uses.
  order = 2,    ///< The part of the order, of random and alternated.
  noise = 3,    ///< The noise of semi-sorted.
  ties = 4,     ///< The order of sequences with equal keys.
  bucket = 5,   ///< The order within a bucket.
  draw = 6,     ///< The order in which buckets' spans are drawn.
  batches = 7,  ///< The permutation of finished batches.
  groups = 8,   ///< The permutation of groups, and of the batches within each.
};

/// SplitMix64 (Steele, Lea and Flood), specified in README.md so that anyone can recompute a plan.
/// Never std::shuffle nor a standard distribution: their results are not specified.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed_plus_epoch, Stream stream)
      : state_(mix64(mix64(seed_plus_epoch) + static_cast<std::uint64_t>(stream))) {}

  /// The value that bits32() gives `index` draws from here.
  std::uint32_t bits32_at(std::uint64_t index) const {
    return static_cast<std::uint32_t>(mix64(state_ + (index + 1) * kGoldenStep) >> 32);
  }

  /// 64 uniform bits.
  std::uint64_t next() {
    state_ += kGoldenStep;
    return mix64(state_);
  }

  /// 32 uniform bits: the upper half of next().
  std::uint32_t bits32() { return static_cast<std::uint32_t>(next() >> 32); }

  /// Uniform in [0, bound), 1 <= bound <= 2^32. Lemire's multiplication with rejection.
  std::uint32_t below(std::uint64_t bound) {
    std::uint64_t product = bits32() * bound;
    if (static_cast<std::uint32_t>(product) < bound) [[unlikely]] {
      const std::uint64_t rejected = (std::uint64_t{1} << 32) % bound;
      while (static_cast<std::uint32_t>(product) < rejected) product = bits32() * bound;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

 private:
  std::uint64_t state_;
};

/// A uniform permutation in place: Fisher and Yates, from the last element down to the second.
template <class T>
void permute(std::span<T> values, RandomStream& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[random.below(i)]);
  }
}

}  // namespace batchwright
