#include "daemon/delivery/feed_resources.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace batchwright {
namespace {

/// What the arena will make of it.
std::uint64_t whole_pages(std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

Result<FeedResources> prepare_feed(Dataset& dataset, const FeedSettings& settings,
                                   std::uint64_t memory_bytes) {
  auto snapshot = dataset.snapshot();
  if (!snapshot) return snapshot.error();
  if ((*snapshot)->sequences() == 0) {
    return Error{ErrorCode::infeasible, "the dataset has no sequences"};
  }
  const auto bound =
      plan_bound((*snapshot)->lengths(), settings.plan, (*snapshot)->shard_sequences());
  if (!bound) return bound.error();
  auto first = plan_snapshot(*snapshot, settings.plan, Epoch{0});
  if (!first) return first.error();
  const auto slot_bytes = slot_bytes_for(
      **snapshot, {settings.name, settings.layout, settings.padding_value, settings.on_corrupt},
      *bound);
  if (!slot_bytes) return slot_bytes.error();
  const std::uint64_t slot = whole_pages(*slot_bytes);
  const std::uint64_t needed = slot * settings.slots;
  if (needed > memory_bytes) {
    return Error{
        ErrorCode::does_not_fit,
        fmt::format("its arena needs {} bytes ({} slots of {} bytes), the memory ceiling "
                    "leaves {} bytes; {} slots would fit",
                    needed, settings.slots, *slot_bytes, memory_bytes, memory_bytes / *slot_bytes)};
  }
  auto arena = Arena::create(settings.slots, *slot_bytes);
  if (!arena) return arena.error();
  return FeedResources{std::move(*snapshot), std::move(*first), std::move(*arena)};
}

}  // namespace batchwright
