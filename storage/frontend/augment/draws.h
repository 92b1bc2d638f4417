#pragma once

#include <cstddef>
#include <cstdint>
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
  std::uint64_t use = 0;  ///< How often the ordinal came before in this epoch.
};

/// The draws of one stage for one row. README.md has the formulae.
/// Threads: one at a time.
class Draws {
 public:
  Draws(const DrawKey& key, DrawStage stage);

  std::uint64_t next() { return generator_.next(); }
  /// Uniform in [0, bound), 1 <= bound <= 2^32.
  std::uint32_t below(std::uint64_t bound) { return generator_.below(bound); }
  /// Uniform in [0, 1).
  double uniform();
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
  SplitMix64 start_;
  SplitMix64 generator_;
};

/// Which of `count` speeds a row has, each as likely. count >= 1.
std::size_t draw_speed(const DrawKey& key, std::size_t count);

/// The offset of a random KeepOne. of >= 1.
std::uint32_t draw_keep_offset(const DrawKey& key, std::uint32_t of);

}  // namespace batchwright
