#include "daemon/delivery/feed/slots/itinerary.h"

#include <algorithm>

namespace batchwright {

std::optional<BatchId> Itinerary::ahead(std::uint64_t distance) const {
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

std::optional<std::uint64_t> Itinerary::distance(const BatchId& id) const {
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
