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
  ask(client, to_push_asked(push, frame));
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
