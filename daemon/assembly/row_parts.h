#pragma once

#include "daemon/planning/planning.h"
#include "formats/formats.h"

namespace batchwright {

/// Whether a chunk of a sequence has the frames of this field that are its own, and no others.
inline bool per_frame(const FieldSpec& field) {
  return field.kind == FieldKind::primary || field.kind == FieldKind::aligned;
}

/// Whether the row is all of its sequence.
inline bool is_whole(const Row& row) {
  return row.start == 0 && row.flags == (kRowReset | kRowLast);
}

}  // namespace batchwright
