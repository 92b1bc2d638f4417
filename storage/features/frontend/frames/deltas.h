#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// What stands for frames before the first and behind the last.
enum class DeltaEdges : std::uint8_t {
  htk,    ///< Each order repeats the ends of the one before (also torchaudio).
  kaldi,  ///< Each order is one filter of the static values, whose ends are repeated.
};

/// Slopes of values over time, and slopes of these.
struct DeltaOptions {
  std::uint32_t order = 2;   ///< 0: static values alone.
  std::uint32_t window = 2;  ///< n: frames on each side of the one.
  DeltaEdges edges = DeltaEdges::htk;
  friend bool operator==(const DeltaOptions&, const DeltaOptions&) = default;
};

/// Errors: invalid_argument, naming the setting: an order above 3, or a window of 0 or above 64.
Result<void> check(const DeltaOptions& options);

/// Memory that deltas take; it grows to the longest sequence and is used again.
/// Threads: one at a time.
struct DeltaScratch {
  std::vector<double> values;
  std::vector<double> slopes;
};

/// Static values, then first, then second slopes of each frame: `frames` [T, dimensions] become
/// `out` [T, dimensions * (order + 1)], which is other memory. dimensions >= 1.
void append_deltas(const DeltaOptions& options, std::size_t dimensions,
                   std::span<const float> frames, std::span<float> out, DeltaScratch& scratch);

}  // namespace batchwright
