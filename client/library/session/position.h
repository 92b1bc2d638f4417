#pragma once

#include <cstdint>

#include "formats/formats.h"

namespace batchwright {

/// A place in the epochs of a plan: the step that comes next.
struct Position {
  Fingerprint plan;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
};

/// What was asked for and granted, in numbers.
struct Grant {
  Position first;           ///< Where the subscription began.
  std::uint64_t steps = 0;  ///< Steps of that epoch.
  std::uint32_t batches_per_step = 0;
  std::uint32_t world = 0;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::uint32_t window = 0;
};

}  // namespace batchwright
