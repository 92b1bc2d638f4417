#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// What mean and variance are taken over.
enum class CmvnKind : std::uint8_t {
  global,     ///< A whole dataset, by sums made before.
  speaker,    ///< All sequences of one speaker, by sums made before.
  utterance,  ///< The frames of this sequence.
  sliding,    ///< `window` frames around each frame.
};

struct CmvnOptions {
  CmvnKind kind = CmvnKind::global;
  bool variance = true;        ///< Values are divided by their deviation, too.
  std::uint32_t window = 600;  ///< Frames, of sliding.
  friend bool operator==(const CmvnOptions&, const CmvnOptions&) = default;
};

/// Errors: invalid_argument: a sliding window of 0 frames or above 65,536.
Result<void> check(const CmvnOptions& options);

/// Sums over frames, from which mean and variance of each dimension follow.
/// Threads: one at a time while they grow, any number of readers then.
struct CmvnSums {
  explicit CmvnSums(std::size_t dimensions) : sums(dimensions), squares(dimensions) {}

  /// Adds `frames` [T, dimensions].
  void add(std::span<const float> frames);
  /// Adds what another has, of as many dimensions.
  void add(const CmvnSums& other);

  std::uint64_t frames = 0;
  std::vector<double> sums;
  std::vector<double> squares;
};

/// Errors: invalid_argument: sums of no frame, of other dimensions than the features', or that are
/// not those of finite numbers.
Result<void> check(const CmvnSums& sums, std::size_t dimensions);

/// Memory that normalising takes; it grows to the longest sequence and is used again.
/// Threads: one at a time.
struct CmvnScratch {
  std::vector<float> frames;
  std::vector<double> behind;  ///< [window][2 dimensions] of sums up to a block's end.
  std::vector<double> ahead;   ///< [2 dimensions] of the block behind it.
  std::vector<double> mean;
  std::vector<double> deviation;
};

/// (x - mean) / deviation of `frames` [T, dimensions], in place. `sums` pass check().
void normalise_by(const CmvnSums& sums, bool variance, std::span<float> frames,
                  CmvnScratch& scratch);

/// The same by this sequence's own frames: kinds utterance and sliding. dimensions >= 1.
void normalise_own(const CmvnOptions& options, std::size_t dimensions, std::span<float> frames,
                   CmvnScratch& scratch);

}  // namespace batchwright
