// What a live feed's driver does beside that of a dataset's.

#include <fmt/format.h>

#include <utility>

#include "daemon/delivery/feed/feed.h"

namespace batchwright {
namespace {

/// Slots are made larger than the step at hand needs, so that they seldom grow.
constexpr std::size_t kSpare = 4;  ///< A fourth of it.

}  // namespace

void Feed::start_live() {
  const LiveFeedSettings& live = *settings().live;
  ports_.log.note<Event::live_feed_opened>(name(), in_mib(live.pool.pool_bytes),
                                           settings().plan.world,
                                           to_string(core_.facts().fingerprint));
  note_arena();
  if (!data_.few_slots.empty()) ports_.log.note<Event::slots_few>(name(), data_.few_slots);
}

void Feed::produce(const ClientInfo& client, const wire::Produce& request) {
  ProduceAsked asked;
  request.UnPackTo(&asked.request);
  if (!client.inline_batches && asked.request.area_bytes != 0) {
    if (const auto given = areas_.give(client.session, asked.request.area_bytes)) {
      asked.area = {given->area->bytes(), given->area};
      asked.number = given->number;
    }
  }
  ask(client, std::move(asked));
}

void Feed::push(const ClientInfo& client, const wire::Push& push,
                std::span<const std::byte> frame) {
  PushAsked asked = to_push_asked(push, frame);
  const LiveFeedSettings& live = *settings().live;
  // One of another feed is refused.
  if (push.of() != nullptr && push.of()->feed()->string_view() == live.join.from) {
    auto rows = ports_.rows_of(live.join.from, from_wire(*push.of()->fingerprint()));
    asked.join = rows ? make_join(live, *std::move(rows)) : rows.error();
  }
  ask(client, std::move(asked));
}

Result<std::shared_ptr<const StoredRows>> Feed::rows_of(const Fingerprint& of) const {
  if (failure()) return *failure();
  if (is_live()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("feed {} is live: rows are joined of a feed of a dataset", name())};
  }
  Fingerprint newest = data_.first_epoch.outline().fingerprint;
  if (newest == of) return data_.first_epoch.rows;
  for (const PlannedEpoch& epoch : parts().plans.all()) {
    newest = epoch.outline().fingerprint;
    if (newest == of) return epoch.rows;
  }
  return Error{ErrorCode::fingerprint_mismatch,
               fmt::format("the row is of feed {} with fingerprint {}, which is {} by now", name(),
                           to_string(of), to_string(newest))};
}

void Feed::ask(const ClientInfo& client, LiveRequest request) {
  tell(LiveAsked{client, std::move(request)});
}

/// On a thread of the feed's own: reserving memory takes a while.
void Feed::carry_out(const GrowSlots& action) {
  using Made = std::shared_ptr<Result<LargerArena>>;
  loop_.elsewhere(
      [own = settings(), bytes = action.slot_bytes + action.slot_bytes / kSpare,
       memory = ports_.memory, has_number = arena_number().next().has_value()] {
        return std::make_shared<Result<LargerArena>>(
            make_larger_arena(own, bytes, memory, has_number));
      },
      [this](const Made& made) {
        if (!*made) return tell(SlotsNotGrown{made->error()});
        tell(SlotsGrown{generation_of(std::move(**made))});
      });
}

}  // namespace batchwright
