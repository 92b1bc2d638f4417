#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "formats/formats.h"

namespace batchwright {

/// The stages that draw, each from a stream of its own, so that switching one on or off changes no
/// other's draws. The numbers are part of every row: append, never renumber.
enum class DrawStage : std::uint64_t {
  style = 1,
  speed = 2,
  gain = 3,
  noise = 4,
  reverberation = 5,
  telephone = 6,
  dither = 7,
  time_masks = 8,
  frequency_masks = 9,
  time_warp = 10,
  spec_augment = 11,  ///< Whether there are masks and warps at all.
  keep_one_of = 12,
};

/// What the draws of one row depend on, and all that they depend on.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t ordinal = 0;
  std::uint64_t use = 0;  ///< How often the same row came before in this epoch.
  /// Of the dataset that the ordinal counts in, so that no two share their draws. None: draws of
  /// version 1.
  std::optional<std::uint64_t> identity = std::nullopt;
};

/// The draws of one stage for one row. DEFINITIONS.md has the formulae.
/// Threads: one at a time.
class Draws {
 public:
  Draws(const DrawKey& key, DrawStage stage);

  std::uint64_t next() { return generator_.next(); }
  /// Uniform in [0, bound), 1 <= bound <= 2^32.
  std::uint32_t below(std::uint64_t bound) { return generator_.below(bound); }
  /// Uniform in [0, 1): of the upper 53 bits, all that a double holds.
  double uniform() { return unit_of(next()); }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  /// True with a probability; it takes a draw for 0 and 1, too.
  bool chance(double probability) { return uniform() < probability; }
  /// A place, each with a probability in proportion to its weight. At least one; none below 0.
  std::size_t pick(std::span<const double> weights);

  /// Normally distributed, mean 0, variance 1: number n of the stream's start, whatever was drawn.
  double normal(std::uint64_t n) const;
  /// normal(2 pair) and normal(2 pair + 1).
  struct NormalPair {
    double even;
    double odd;
  };
  NormalPair normals(std::uint64_t pair) const;

 private:
  friend class EpochDraws;
  explicit Draws(SplitMix64 start) : start_(start), generator_(start) {}
  static double unit_of(std::uint64_t bits) {
    // Of signed numbers: processors convert those in one instruction.
    return static_cast<double>(static_cast<std::int64_t>(bits >> 11)) * 0x1p-53;
  }

  SplitMix64 start_;
  SplitMix64 generator_;
};

/// The draws of one stage in one epoch: of millions of rows, they are found by half the work.
/// Immutable. Threads: any.
class EpochDraws {
 public:
  /// Of the key neither ordinal nor use count.
  EpochDraws(const DrawKey& key, DrawStage stage);
  /// The draws of the key with this ordinal and use.
  Draws of(std::uint64_t ordinal, std::uint64_t use) const {
    return Draws(SplitMix64(mix64(mix64(start_ + ordinal) + use)));
  }

 private:
  std::uint64_t start_;
};

/// Which of `count` speeds a row has, each as likely. count >= 1. `draws`: of DrawStage::speed,
/// nothing drawn yet.
inline std::size_t draw_speed(Draws draws, std::size_t count) {
  const double place = draws.uniform() * static_cast<double>(count);
  return std::min(static_cast<std::size_t>(static_cast<std::int64_t>(place)), count - 1);
}

/// The offset of a random KeepOne. of >= 1. `draws`: of DrawStage::keep_one_of, nothing drawn yet.
inline std::uint32_t draw_keep_offset(Draws draws, std::uint32_t of) { return draws.below(of); }

}  // namespace batchwright
