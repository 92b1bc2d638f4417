#include "daemon/delivery/feed/core/upcoming_batches.h"

#include <fmt/core.h>

#include <algorithm>

namespace batchwright {

Share whole_share(std::uint32_t world) { return {world, 0, world}; }

Result<Share> rank_share(std::uint32_t world, std::uint32_t rank, std::uint32_t ranks) {
  if (ranks == 0 || rank >= ranks) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("rank {} of {} ranks: a rank is below the number of ranks", rank, ranks)};
  }
  if (world % ranks != 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} ranks do not divide the feed's world of {}", ranks, world)};
  }
  const std::uint32_t count = world / ranks;
  return Share{world, rank * count, count};
}

Cursor::Cursor(const Share& share, Epoch epoch, Step step)
    : share_(share), epoch_(epoch), taken_(step.value * share.count) {}

void Cursor::begin_next_epoch() {
  ++epoch_.value;
  taken_ = 0;
}

BatchIndex Cursor::index_of(std::uint64_t taken) const {
  return BatchIndex{taken / share_.count * share_.world + share_.first + taken % share_.count};
}

std::optional<BatchId> Cursor::ahead(std::uint64_t distance, std::uint64_t steps,
                                     std::uint64_t next_steps) const {
  const std::uint64_t taken = taken_ + distance;
  const std::uint64_t batches = steps * share_.count;
  if (taken < batches) return BatchId{epoch_, index_of(taken)};
  if (taken - batches >= next_steps * share_.count) return std::nullopt;
  return BatchId{Epoch{epoch_.value + 1}, index_of(taken - batches)};
}

std::optional<std::uint64_t> Cursor::distance(const BatchId& id, std::uint64_t steps) const {
  const std::uint64_t place = id.index.value % share_.world;
  if (place < share_.first || place >= share_.first + share_.count) return std::nullopt;
  const std::uint64_t taken = id.index.value / share_.world * share_.count + place - share_.first;
  if (id.epoch == epoch_ && taken >= taken_) return taken - taken_;
  if (id.epoch.value == epoch_.value + 1) return steps * share_.count - taken_ + taken;
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
