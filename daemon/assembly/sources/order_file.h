#pragma once

#include "daemon/planning/planning.h"
#include "storage/dataset/dataset.h"

namespace batchwright {

/// Reads settings.order_file for the sequences of these data, and row_weight, into
/// settings.order_rows; does nothing for another order. A plan depends on order_rows alone: what
/// becomes of the file later changes nothing. Looks up each key, which may wait for the disk, and
/// with row_weight each record's beginning.
/// Errors: io_error (the file cannot be read), bad_configuration (it is no file, is too large, or
/// has a fault, with line and row; the field is not there, is no float, or holds no number), those
/// of Snapshot::find().
Result<void> read_order(const Snapshot& snapshot, PlanSettings& settings);

/// The same for so many sequences without keys or fields, such as a list of lengths.
Result<void> read_order(std::uint64_t sequences, PlanSettings& settings);

}  // namespace batchwright
