#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "daemon/planning/planning.h"
#include "formats/formats.h"
#include "storage/dataset/dataset.h"

namespace batchwright {

/// Where the records of a batch's rows lie, one for each planned row; none for a row without a
/// sequence, or of which no record can be found.
using RowPlaces = std::vector<std::optional<RecordPlace>>;

/// Looks them up. May wait for the tree's pages. Threads: any.
RowPlaces look_up(const Snapshot& snapshot, std::span<const Row> rows);

/// The places of an epoch's coming batches. Whichever thread comes to a batch first looks its rows
/// up: readahead, as a rule, so that LMDB's tree is not descended again while the batch is
/// assembled.
/// Threads: any.
class RowLocations {
 public:
  /// Batches that are remembered. Others are looked up again.
  static constexpr std::size_t kMost = 64;

  /// The places of `rows`, which are those of batch `index`. Remembered, unless the batch, or one
  /// behind it, was taken.
  RowPlaces find(const Snapshot& snapshot, BatchIndex index, std::span<const Row> rows);
  /// The same, for the last time.
  RowPlaces take(const Snapshot& snapshot, BatchIndex index, std::span<const Row> rows);

 private:
  Mutex mutex_;
  std::map<BatchIndex, RowPlaces> batches_ GUARDED_BY(mutex_);
  std::uint64_t next_ GUARDED_BY(mutex_) = 0;  // all below were taken, or passed
};

}  // namespace batchwright
