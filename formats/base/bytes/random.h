#pragma once

#include <cstdint>

#include "formats/base/bytes/hash.h"

namespace batchwright {

/// SplitMix64 (Steele, Lea and Flood), the generator of plans and of augmentation. Specified in
/// daemon/planning/DEFINITIONS.md, so that anyone can recompute what is drawn. Never a standard
/// distribution: their results are not specified.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t state) : state_(state) {}

  /// The value that next() gives `index` draws from here.
  std::uint64_t next_at(std::uint64_t index) const {
    return mix64(state_ + (index + 1) * kGoldenStep);
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

}  // namespace batchwright
