// The part of Feed that says how it stands, for all that is shown of it.

#include <algorithm>
#include <utility>

#include "daemon/delivery/feed/feed.h"

namespace batchwright {
namespace {

PlanStats plan_stats(const PlannedEpoch& epoch) {
  const PlanTotals& totals = epoch.totals;
  const EpochOutline outline = epoch.outline();
  return {outline.epoch, outline.steps(),      outline.batches,         totals.sequences,
          totals.frames, totals.padded_frames, totals.zero_padding_rate};
}

/// Whether it has a place of its own in an epoch, ahead of others or behind.
bool has_position(const Subscription& subscription) {
  return subscription.is_served() && !subscription.in_queue();
}

/// The subscription that is ahead of all others, of those that have a position; null: none has.
const Subscription* furthest(const Subscriptions& all) {
  const Subscription* first = nullptr;
  // Epoch before step: a step counts within its epoch.
  const auto place = [](const Subscription& of) {
    return std::pair(of.cursor.epoch(), of.cursor.step());
  };
  for (const auto& [key, subscription] : all) {
    if (!has_position(subscription)) continue;
    if (first == nullptr || place(*first) < place(subscription)) first = &subscription;
  }
  return first;
}

/// What share of its epoch a subscription is through.
double position_share(const FeedStatus& feed, const Subscription& subscription) {
  if (subscription.is_over()) return 1.0;
  const Epoch epoch = subscription.cursor.epoch();
  const auto plan = std::find_if(feed.plans.begin(), feed.plans.end(),
                                 [epoch](const PlanStats& each) { return each.epoch == epoch; });
  if (plan == feed.plans.end() || plan->steps == 0) return 0.0;
  // A queue has no order of its own, so its share is that of the batches that are done.
  if (!subscription.in_queue()) {
    return static_cast<double>(subscription.cursor.step().value) / static_cast<double>(plan->steps);
  }
  if (feed.queue.epoch != epoch || plan->batches == 0) return 0.0;
  return static_cast<double>(feed.queue.done) / static_cast<double>(plan->batches);
}

SubscriberStatus subscriber_status(const SubscriptionKey& key, const Subscription& subscription,
                                   WaitingTimes::Time now) {
  SubscriberStatus status;
  status.session = key.session;
  status.subscription = key.number;
  status.client = subscription.client.program;
  status.pid = subscription.client.pid;
  status.mode = subscription.terms.mode;
  status.rank = subscription.terms.rank;
  status.ranks = subscription.terms.ranks;
  status.epoch = subscription.cursor.epoch();
  status.step = subscription.cursor.step();
  status.window = subscription.terms.window;
  status.held = static_cast<std::uint32_t>(subscription.leases.size());
  if (const auto since = subscription.holds_since()) status.held_for = now - *since;
  status.waited_for_daemon_seconds = subscription.waiting.daemon_seconds(now);
  status.waited_for_client_seconds = subscription.waiting.client_seconds(now);
  status.waiting = subscription.waiting.now();
  status.delivered_batches = subscription.delivered;
  status.delivered_bytes = subscription.delivered_bytes;
  return status;
}

}  // namespace

FeedStatus Feed::status(WaitingTimes::Time now, Detail detail) const {
  FeedStatus status;
  status.name = name();
  status.number = number_;
  status.arena = arena_number();
  status.state = parts().life.state();
  add_reasons(status, now);
  add_data(status);
  status.counters = core_.counters();
  status.stages = style_->times;
  // What clients hold is ready, too, and is counted once: as held.
  const std::uint32_t held = slots().held();
  status.slots = {slots().count(SlotState::free), slots().count(SlotState::filling),
                  slots().count(SlotState::ready) - held, held,
                  parts().scheduler.slots_ahead(parts().cohorts())};
  status.slots_to_set = parts().slots_to_set();
  status.orphaned_slots = parts().subscriptions.orphaned().slots();
  add_queue(status);
  if (parts().live) status.live = parts().live->status(now, detail == Detail::all);
  add_totals(status, now);
  if (detail == Detail::all) add_subscribers(status, now);
  return status;
}

void Feed::add_reasons(FeedStatus& status, WaitingTimes::Time now) const {
  status.failure = failure();
  status.dataset_stale = !data_.standing.why.empty();
  const auto& blockage = blockage_.blockage();
  if (status.failure) {
    status.reason = status.failure->message;
    status.not_ready = "failed: " + status.reason;
  } else if (blockage) {
    status.reason = describe(*blockage, now);
    status.not_ready = "blocked: " + status.reason;
    status.blocked_by = blockage->by;
    status.blocked_seconds = std::chrono::duration<double>(now - blockage->since).count();
  } else if (status.dataset_stale) {
    status.reason = data_.standing.why;
  } else if (!data_.why_not_newer.empty()) {
    status.reason = "sequences that were appended are left out: " + data_.why_not_newer;
  }
  if (!status.not_ready.empty()) return;
  status.not_ready = status.state == FeedState::starting
                         ? "its first batches are being assembled"
                         : parts().plans.trouble(parts().plan_needs().stood_in);
}

void Feed::add_data(FeedStatus& status) const {
  if (!is_live()) {
    status.dataset = dataset().shards();
    status.dataset_lock = name_of(dataset().lock());
    status.sequences = snapshot().sequences();
  }
  status.fingerprint = core_.facts().fingerprint;
  status.world = parts().settings.plan.world;
  status.slot_bytes = arena().slot_bytes();
  status.arena_bytes = arena().bytes();
  status.making_bytes = making_bytes();
  status.pinned = to_string(arena().pinned());
  status.pages = to_string(arena().pages());
  status.plan_seconds = parts().plans.seconds();
  for (const PlannedEpoch& epoch : parts().plans.all()) {
    status.plans.push_back(plan_stats(epoch));
  }
}

void Feed::add_queue(FeedStatus& status) const {
  status.queue = {queue().epoch(), queue().done_count(), queue().out().size()};
  for (const auto& [index, batch] : queue().undone()) {
    if (batch.times < WorkQueue::kOften && !batch.set_aside) continue;
    status.undone.push_back({queue().epoch(), index, batch.times, batch.set_aside});
  }
}

void Feed::add_totals(FeedStatus& status, WaitingTimes::Time now) const {
  status.waited = parts().waited_before;
  for (const auto& [key, subscription] : parts().subscriptions.all()) {
    status.waited.add(subscription.waiting, now);
    if (!subscription.is_over()) ++status.active;
    if (parts().waits_for_plan(subscription)) status.waits_for_plan = true;
  }
}

/// After plans and queue, of which their shares of an epoch are made.
void Feed::add_subscribers(FeedStatus& status, WaitingTimes::Time now) const {
  const Subscriptions& all = parts().subscriptions.all();
  const Subscription* first = furthest(all);
  status.subscribers.reserve(all.size());
  for (const auto& [key, subscription] : all) {
    SubscriberStatus& one =
        status.subscribers.emplace_back(subscriber_status(key, subscription, now));
    one.position_share = position_share(status, subscription);
    one.left_behind = subscription.straggler.left_behind;
    // Without a position there is nothing to be behind; what takes from a queue has none.
    if (first == nullptr || !has_position(subscription)) continue;
    const Position here{subscription.cursor.epoch(), subscription.cursor.step()};
    one.lag_batches =
        parts().steps_ahead(*first, here).value_or(0) * subscription.cursor.share().count;
  }
}

PlanQuestion Feed::plan_question(std::optional<Epoch> epoch) const {
  const std::vector<PlannedEpoch> planned = parts().plans.all();
  if (!epoch) epoch = planned.empty() ? Epoch{0} : planned.front().outline().epoch;
  PlanQuestion question{name(), *epoch, parts().settings, data_.snapshot, nullptr};
  // Shared, so that the page can be made after the feed has passed on to the next epoch.
  for (const PlannedEpoch& each : planned) {
    if (each.outline().epoch == *epoch) question.planned = each.source;
  }
  return question;
}

}  // namespace batchwright
