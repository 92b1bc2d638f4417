#pragma once

#include "daemon/planning/planning.h"
#include "formats/formats.h"

namespace batchwright {

/// Whether the row is all of its sequence.
inline bool is_whole(const Row& row) {
  return row.start == 0 && row.flags == (kRowReset | kRowLast);
}

}  // namespace batchwright
