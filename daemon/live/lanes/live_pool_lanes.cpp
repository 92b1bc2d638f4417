#include <algorithm>

#include "daemon/live/live_pool.h"
#include "formats/base/base.h"

// The steps of truncated unrolling: what lanes take, what they have come to, and when they wait.

namespace batchwright {

/// Whether the next step waits for what is in flight: if it were cut now, that would find no lane
/// in time, since fresher sequences have taken them, or since they stay empty now.
bool LivePool::lanes_wait() const {
  const Lanes& lanes = units_.lanes();
  const std::uint64_t takes = std::min(lanes.free(), units_.ready().rows);
  std::uint64_t ready = 0;
  std::int64_t open = 0;
  for (const auto& [staleness, level] : levels()) {
    ready += level.ready;
    open += static_cast<std::int64_t>(level.open);
    if (ready >= lanes.free()) return false;  // what is as stale takes all lanes
    const auto in_time = static_cast<std::int64_t>(*settings_.max_staleness - staleness) -
                         static_cast<std::int64_t>(trainers_.ahead());
    if (open > lanes.room_after(takes, in_time)) return true;
  }
  return false;
}

/// The row of each lane, those of a rank together, once free lanes have taken these units.
std::vector<std::vector<StepRow>> LivePool::rows_of_lanes(const std::vector<UnitId>& taken) {
  Lanes& lanes = units_.lanes();
  for (const UnitId id : taken) {
    units_.lift(id);
    LiveUnit& unit = units_.unit(id);
    unit.given = 1;
    unit.last_step = trainers_.steps();
    lanes.take(unit.first, units_.sequence(unit.first).length);
  }
  const std::size_t of_rank = lanes.all().size() / settings_.world;
  std::vector<std::vector<StepRow>> batches(settings_.world);
  std::vector<StepRow> rows;  // with a sequence
  for (std::size_t at = 0; at < lanes.all().size(); ++at) {
    const Lane& lane = lanes.all()[at];
    StepRow row;
    if (!lane.is_free()) {
      row = {lane.sequence, lanes.frames(lane), units_.sequence(lane.sequence).arrival};
      row.start = lane.next;
      rows.push_back(row);
    }
    batches[at / of_rank].push_back(row);
  }
  std::size_t fillers = 0;
  for (auto& batch : batches) {
    const bool is_idle = std::ranges::find_if(batch, [](const StepRow& row) {
                           return row.sequence != kNoId;
                         }) == batch.end();
    if (!is_idle) continue;
    batch.front() = rows[fillers++ % rows.size()];  // only at the end of the feed
    batch.front().counts = false;
  }
  return batches;
}

/// The step is cut: what is through leaves the pool.
void LivePool::move_lanes(const std::vector<UnitId>& taken) {
  const auto through = units_.lanes().move_on();
  for (const SequenceId id : through) drop(units_.sequence(id).unit, SequenceState::done, "");
  for (const UnitId id : taken) {
    const LiveUnit& unit = units_.unit(id);
    if (unit.given != 0) report(units_.sequence(unit.first), SequenceState::delivered, "");
  }
}

/// All that lanes have is too stale to go on with.
void LivePool::clear_lanes() {
  for (const SequenceId id : units_.lanes().clear()) {
    drop(units_.sequence(id).unit, SequenceState::done, "stale");
  }
}

}  // namespace batchwright
