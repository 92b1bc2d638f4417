#pragma once

#include <cstdint>
#include <vector>

#include "daemon/live/events.h"
#include "daemon/live/settings.h"

namespace batchwright {

/// A row of a step, before it has a rank.
struct StepRow {
  std::uint32_t sequence = kNoId;  ///< Its place in the table; kNoId: a free lane's row.
  std::uint32_t length = 0;        ///< Its frames.
  std::uint64_t arrival = 0;
  bool counts = true;       ///< Otherwise it is filler, which repeats a row.
  std::uint32_t start = 0;  ///< The first of its frames.
};

/// Cuts a step into `world` batches of like length and equal cost, and permutes them over the
/// ranks. An item is what may not be split: a row, or a group where a batch holds whole groups;
/// none is empty. Where there are fewer items than batches, their first rows are repeated as
/// filler.
std::vector<std::vector<StepRow>> cut_step(const LiveSettings& settings, std::uint64_t step,
                                           std::vector<std::vector<StepRow>> items);

}  // namespace batchwright
