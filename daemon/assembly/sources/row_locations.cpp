#include "daemon/assembly/sources/row_locations.h"

#include <algorithm>
#include <utility>

namespace batchwright {

RowPlaces look_up(const Snapshot& snapshot, std::span<const Row> rows) {
  RowPlaces places;
  places.reserve(rows.size());
  for (const Row& row : rows) {
    // A lane that ran out has no sequence.
    places.push_back(row.length == 0 ? std::nullopt : snapshot.place(Ordinal{row.ordinal}));
  }
  return places;
}

RowPlaces RowLocations::find(const Snapshot& snapshot, BatchIndex index,
                             std::span<const Row> rows) {
  {
    const MutexLock lock(mutex_);
    const auto known = batches_.find(index);
    if (known != batches_.end()) return known->second;
  }
  // Without the lock: it may wait for the disk.
  RowPlaces places = look_up(snapshot, rows);
  const MutexLock lock(mutex_);
  // What comes latest is needed latest, so that is what goes without.
  const bool has_room = batches_.size() < kMost;
  if (index.value >= next_ && has_room) batches_.insert_or_assign(index, places);
  return places;
}

RowPlaces RowLocations::take(const Snapshot& snapshot, BatchIndex index,
                             std::span<const Row> rows) {
  {
    const MutexLock lock(mutex_);
    next_ = std::max(next_, index.value + 1);
    if (auto known = batches_.extract(index)) return std::move(known.mapped());
  }
  return look_up(snapshot, rows);
}

}  // namespace batchwright
