#include "daemon/delivery/feed/plans/growth.h"

#include <fmt/format.h>

#include <utility>

namespace batchwright {
namespace {

Result<std::shared_ptr<const Snapshot>> choose(const Growth& growth) {
  if (growth.content && *growth.content == growth.known->content()) return growth.known;
  if (growth.content) {
    auto then = growth.dataset->snapshot_at(*growth.content);
    if (then || then.error().code != ErrorCode::not_found) return then;
    return Error{ErrorCode::fingerprint_mismatch,
                 fmt::format("data changed: {}", then.error().message)};
  }
  auto newest = growth.dataset->snapshot();
  if (newest && (*newest)->content() == growth.known->content()) return growth.known;
  return newest;
}

/// An arena whose slots hold every batch of these data, with its memory; none where the current one
/// suffices.
Result<void> add_arena(GrownEpoch& grown, const Snapshot& snapshot, const Growth& growth,
                       const FeedSettings& settings) {
  const auto bytes = feed_slot_bytes(snapshot, settings);
  if (!bytes) return bytes.error();
  if (*bytes <= growth.slot_bytes) return {};
  if (!growth.arena_may_grow) {
    return Error{ErrorCode::does_not_fit,
                 "its sequences need a larger arena, and this feed has had all numbers that arenas "
                 "can have; restart the daemon"};
  }
  const std::uint64_t needed = whole_pages(*bytes) * settings.slots;
  auto memory = claim_memory(growth.memory, needed, settings.name);
  if (!memory) {
    return Error{
        ErrorCode::does_not_fit,
        fmt::format("its sequences need an arena of {} beside the one there is, the memory "
                    "ceiling leaves {}",
                    in_mib(needed), in_mib(growth.memory->left()))};
  }
  auto arena = Arena::create(settings.slots, *bytes, settings.huge_pages);
  if (!arena) return arena.error();
  grown.memory = std::move(memory);
  grown.arena = std::move(*arena);
  return {};
}

/// What sound takes that is longer than any before.
Result<void> add_making(GrownEpoch& grown, const Snapshot& snapshot, const Growth& growth,
                        const FeedSettings& settings) {
  const std::uint64_t needed = making_bytes(snapshot, settings);
  if (needed <= growth.making_bytes) return {};
  grown.making = claim_memory(growth.memory, needed - growth.making_bytes, settings.name);
  if (grown.making) return {};
  return Error{ErrorCode::does_not_fit,
               fmt::format("making the rows of its longest sound needs {}, {} more than there is, "
                           "the memory ceiling leaves {}",
                           in_mib(needed), in_mib(needed - growth.making_bytes),
                           in_mib(growth.memory->left()))};
}

using Chosen = Result<std::shared_ptr<const Snapshot>>;

/// The epoch that is wanted, with the arena that it needs.
Result<GrownEpoch> plan_asked(const Growth& growth, const Chosen& snapshot,
                              const FeedSettings& settings, Epoch epoch) {
  if (!snapshot) return snapshot.error();
  GrownEpoch grown;
  if (*snapshot != growth.known) {
    if (auto added = add_making(grown, **snapshot, growth, settings); !added) return added.error();
    if (auto added = add_arena(grown, **snapshot, growth, settings); !added) return added.error();
  }
  auto planned = plan_snapshot(*snapshot, settings, epoch);
  if (!planned) return planned.error();
  grown.epoch = std::move(*planned);
  return grown;
}

/// Where nothing is decided yet the data that are known are as good as newer ones that cannot be
/// had now.
Result<GrownEpoch> grow(const Growth& growth, const Chosen& chosen, const FeedSettings& settings,
                        Epoch epoch) {
  auto asked = plan_asked(growth, chosen, settings, epoch);
  if (asked || growth.content) return asked;
  auto planned = plan_snapshot(growth.known, settings, epoch);
  if (!planned) return planned.error();
  GrownEpoch grown;
  grown.epoch = std::move(*planned);
  grown.why_not_newer = asked.error().message;
  return grown;
}

}  // namespace

Result<std::shared_ptr<const Snapshot>> choose_data(const Growth& growth) {
  return caught(ErrorCode::internal, "planning: ", [&] { return choose(growth); });
}

Result<GrownEpoch> plan_growing(const Growth& growth,
                                const Result<std::shared_ptr<const Snapshot>>& chosen,
                                const FeedSettings& settings, Epoch epoch) {
  return caught(ErrorCode::internal,
                "planning: ", [&] { return grow(growth, chosen, settings, epoch); });
}

}  // namespace batchwright
