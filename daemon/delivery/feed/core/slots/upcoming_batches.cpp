#include "daemon/delivery/feed/core/slots/upcoming_batches.h"

#include <algorithm>

namespace batchwright {

Cursor::Cursor(const Share& share, Epoch epoch, Step step)
    : share_(share), epoch_(epoch), taken_(share.before_step(step.value)) {}

void Cursor::begin_next_epoch() {
  ++epoch_.value;
  taken_ = 0;
}

std::optional<BatchId> Cursor::ahead(std::uint64_t distance, std::uint64_t steps,
                                     std::uint64_t next_steps) const {
  const std::uint64_t taken = taken_ + distance;
  const std::uint64_t batches = share_.before_step(steps);
  if (taken < batches) return BatchId{epoch_, share_.at(taken)};
  if (taken - batches >= share_.before_step(next_steps)) return std::nullopt;
  return BatchId{Epoch{epoch_.value + 1}, share_.at(taken - batches)};
}

std::optional<std::uint64_t> Cursor::distance(const BatchId& id, std::uint64_t steps) const {
  const auto taken = share_.before(id.index);
  if (!taken) return std::nullopt;
  if (id.epoch == epoch_ && *taken >= taken_) return *taken - taken_;
  if (id.epoch.value == epoch_.value + 1) return share_.before_step(steps) - taken_ + *taken;
  return std::nullopt;
}

std::optional<BatchId> UpcomingBatches::ahead(std::uint64_t distance) const {
  if (distance < rehearsals.size()) return rehearsals[distance];
  const std::uint64_t beyond = distance - rehearsals.size();
  const Epoch epoch = cursor.epoch();
  if (queue != nullptr) {
    if (queue->epoch() != epoch) return {};
    const auto index = queue->ahead(beyond, steps * cursor.share().world);
    return index ? std::optional(BatchId{epoch, *index}) : std::nullopt;
  }
  // Its next batch is never one of the next epoch: the end of this one has to be told before.
  return cursor.ahead(beyond, steps, distance > 0 ? next_steps : 0);
}

std::optional<std::uint64_t> UpcomingBatches::distance(const BatchId& id) const {
  const auto found = std::find(rehearsals.begin(), rehearsals.end(), id);
  if (found != rehearsals.end()) return static_cast<std::uint64_t>(found - rehearsals.begin());
  std::optional<std::uint64_t> away;
  if (queue == nullptr) {
    away = cursor.distance(id, steps);
  } else if (queue->epoch() == id.epoch) {
    away = queue->distance(id.index);
  }
  return away ? std::optional(*away + rehearsals.size()) : std::nullopt;
}

}  // namespace batchwright
