#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/delivery/feed/live/live_source.h"

namespace batchwright {

/// A step as a record takes it.
struct RecordedStep {
  std::uint64_t first = 0;  ///< The ordinal that the record gives the first of `sequences`.
  /// Those of the step that the record does not have, in the order of their ordinals.
  std::vector<std::shared_ptr<const PushedSequence>> sequences;
  std::string lines;  ///< Of the order file: a comment, and a line for each batch.
};

}  // namespace batchwright
