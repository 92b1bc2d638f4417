#include "daemon/delivery/growth.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace batchwright {
namespace {

Result<std::shared_ptr<const Snapshot>> choose(const Growth& growth) {
  if (growth.content && *growth.content == growth.known->content()) return growth.known;
  if (growth.content) {
    auto then = growth.dataset->snapshot_at(*growth.content);
    if (then || then.error().code != ErrorCode::not_found) return then;
    return Error{ErrorCode::fingerprint_mismatch, "data changed: " + then.error().message};
  }
  auto newest = growth.dataset->snapshot();
  if (newest && (*newest)->content() == growth.known->content()) return growth.known;
  return newest;
}

/// An arena whose slots hold every batch of these data; null where the one there is does.
Result<std::unique_ptr<Arena>> arena_for(const Snapshot& snapshot, const Growth& growth,
                                         const FeedSettings& settings) {
  const auto bytes = feed_slot_bytes(snapshot, settings);
  if (!bytes) return bytes.error();
  if (*bytes <= growth.slot_bytes) return std::unique_ptr<Arena>();
  const std::uint64_t needed = whole_pages(*bytes) * settings.slots;
  if (!growth.memory->take(needed)) {
    return Error{ErrorCode::does_not_fit,
                 fmt::format("its sequences need an arena of {} bytes beside the one there is, the "
                             "memory ceiling leaves {} bytes",
                             needed, growth.memory->left())};
  }
  auto arena = Arena::create(settings.slots, *bytes);
  if (!arena) growth.memory->give_back(needed);
  return arena;
}

Result<GrownEpoch> grow(const Growth& growth, const FeedSettings& settings, Epoch epoch) {
  const auto snapshot = choose(growth);
  if (!snapshot) return snapshot.error();
  GrownEpoch grown;
  if (*snapshot != growth.known) {
    auto arena = arena_for(**snapshot, growth, settings);
    if (!arena && growth.content) return arena.error();
    if (!arena) grown.why_not_newer = arena.error().message;
    if (arena) grown.arena = std::move(*arena);
  }
  auto planned =
      plan_snapshot(grown.why_not_newer.empty() ? *snapshot : growth.known, settings.plan, epoch);
  if (!planned) return planned.error();
  grown.epoch = std::move(*planned);
  return grown;
}

}  // namespace

Result<GrownEpoch> plan_growing(const Growth& growth, const FeedSettings& settings, Epoch epoch) {
  try {
    return grow(growth, settings, epoch);
  } catch (const std::exception& failure) {
    return Error{ErrorCode::internal, std::string("planning: ") + failure.what()};
  }
}

}  // namespace batchwright
