// What a feed does that is live: its producers' events, and the steps that its trainers wait for.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/delivery/feed/core/feed_core.h"

namespace batchwright {
namespace {

/// In the place of a subscription's number: what is sent to a session's producers.
constexpr SubscriptionNumber kNoSubscription{~decltype(SubscriptionNumber::value){0}};

}  // namespace

void FeedCore::take(LiveAsked event) {
  if (!has_failed()) parts_.live->on(event.client, std::move(event.asked), now_);
}

/// Its pool goes on with what it has.
void FeedCore::take_limits(const LiveLimits& limits) {
  LiveLimits& own = parts_.settings.live->pool;
  if (own == limits) return;
  own = limits;
  parts_.live->adjust(limits, now_);
}

/// From now on all is assembled there, and what clients hold of the old one stays as it is.
void FeedCore::take(SlotsGrown event) {
  slots_grow_ = false;
  if (parts_.life.is_retired()) return;
  parts_.scheduler.grow(std::move(event.slots));
  const Arena& arena = *parts_.scheduler.slots()->arena;
  log<Event::arena_grown>(name(), in_mib(arena.bytes()), in_mib(arena.slot_bytes()));
  parts_.live->set_slot_bytes(arena.slot_bytes());
  due_.all = true;
}

/// What it kept for the record goes.
void FeedCore::take(const StepsWritten& event) {
  parts_.live->recorded(event.upto);
  note_not_written(event.failure);
}

std::vector<Record> FeedCore::take_steps() {
  if (!parts_.live) return {};
  std::vector<RecordedStep> steps = parts_.live->take_steps();
  return {std::make_move_iterator(steps.begin()), std::make_move_iterator(steps.end())};
}

/// It has had all steps, and could take the next one.
void FeedCore::await_step(const Subscription& subscription) {
  Step next{parts_.plans.steps(subscription.cursor.epoch())};
  if (!subscription.in_queue()) {
    next = std::max(next, subscription.cursor.step());  // it may be past steps that are held back
  } else if (!parts_.desk.queue().exhausted(next.value * parts_.settings.plan.world)) {
    return;
  }
  parts_.live->take(FeedParts::trainer_of(subscription), next, subscription.says_it_waits(), now_);
}

/// A slot may still have a batch of a step that is kept no longer. But the room of its sequences is
/// their producers' again, who may have written to it before it was assembled.
bool FeedCore::refuse_if_gone(Subscription& subscription, const BatchId& id) {
  const Step first = parts_.live->first_kept();
  const Step asked{id.index.value / parts_.settings.plan.world};
  if (asked >= first) return false;
  refuse(subscription, {ErrorCode::not_found,
                        fmt::format("step {} of feed {} is kept no longer; the first that is: {}",
                                    asked.value, name(), first.value)});
  return true;
}

/// A trainer may have released a step.
void FeedCore::note_released(const Subscription& subscription) {
  if (!parts_.live) return;
  const Step upto = subscription.in_queue()
                        ? Step{parts_.desk.queue().first_undone() / parts_.settings.plan.world}
                        : subscription.oldest_step();
  parts_.live->released(FeedParts::trainer_of(subscription), upto, now_);
}

/// What the feed's spool has to note comes before all that is told of it.
void FeedCore::note_turn() {
  if (!parts_.is_spooled()) return;
  if (auto turn = parts_.live->take_turn()) parts_.desk.note_turn(std::move(*turn));
}

/// Steps that were cut are for those that wait for them, and what was decided is told.
void FeedCore::tend_live() {
  LiveService& live = *parts_.live;
  note_turn();
  while (live.take_news() && !has_failed()) {
    note_turn();  // before the tickets of its steps
    due_.ahead = true;
    serve_all(parts_.subscriptions.keys());
  }
  const Step kept = live.first_kept();
  if (const auto oldest = parts_.oldest_step()) live.keep_from(*oldest, parts_.queued_step());
  // Before a slot is taken for what can be assembled no more.
  if (live.first_kept() != kept) serve_all(parts_.subscriptions.keys());
  note_turn();
  for (LiveService::Message& message : live.take_messages()) {
    const SubscriptionKey to{message.to, kNoSubscription};
    send(live.is_spooled() ? parts_.desk.last_record() : 0, to, std::move(message.bytes));
  }
  const std::size_t wanted = live.wanted_slot_bytes();
  if (wanted != 0 && !std::exchange(slots_grow_, true)) act(GrowSlots{wanted});
  const auto deadline = live.next_deadline();
  if (deadline && timer_of(FeedTimer::live) != deadline) set_timer(FeedTimer::live, *deadline);
}

}  // namespace batchwright
