// The part of Feed that tells each subscription what comes next, once the records that it rests on
// are with the kernel.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "daemon/delivery/feed/feed.h"
#include "daemon/delivery/feed/feed_terms.h"

namespace batchwright {

void Feed::serve(const SubscriptionKey& key) {
  bool goes_on = parts_.subscriptions.contains(key);
  while (goes_on) {
    const auto one = parts_.subscriptions.edit(key);
    one->blocked_by = BlockedBy::nothing;
    goes_on = !one->is_over() && !failure() && serve_next(key, *one);
    if (!goes_on) note_waiting(*one);
  }
}

/// One event for one subscription; false when it has to wait.
bool Feed::serve_next(const SubscriptionKey& key, Subscription& subscription) {
  const auto epoch = parts_.plans.find(subscription.cursor.epoch());
  if (!epoch) {
    const Error* error =
        parts_.plans.refusal(subscription.cursor.epoch(), PlanTurns::Time::clock::now());
    if (error != nullptr) refuse(subscription, *error);
    return false;
  }
  if (subscription.stage == Subscription::Stage::applied) {
    accept(key, subscription, *epoch);
    return true;
  }
  if (subscription.stage == Subscription::Stage::between_epochs)
    begin_epoch(key, subscription, *epoch);
  if (parts_.is_over(subscription, epoch->plan.steps())) {
    end_epoch(key, subscription, epoch->plan.steps());
    return true;
  }
  const auto id = parts_.next_of(subscription);
  if (!id || !subscription.has_credit()) return false;
  if (parts_.leads_too_far(subscription)) {
    subscription.blocked_by = BlockedBy::lead;
    return false;
  }
  if (!parts_.may_take(subscription, *id)) {
    const bool looks_on = subscription.looks_on() && !subscription.leases.empty();
    if (!looks_on) subscription.blocked_by = BlockedBy::slots;
    return false;
  }
  if (const Error* broken = parts_.scheduler.broken(*id)) {
    fail(Error(*broken));
    return false;
  }
  const auto slot = slots().find(*id);
  if (!slot || slots().state(*slot) != SlotState::ready) return false;
  deliver(key, subscription, *epoch, *slot);
  return true;
}

void Feed::accept(const SubscriptionKey& key, Subscription& subscription,
                  const EpochSource& epoch) {
  const std::uint64_t steps = epoch.plan.steps();
  const Step first = subscription.terms.first_step;
  if (first.value > steps) {
    return refuse(subscription, {ErrorCode::invalid_argument,
                                 fmt::format("step {} of epoch {}, which has {} steps", first.value,
                                             epoch.epoch.value, steps)});
  }
  subscription.cursor = Cursor(subscription.cursor.share(), epoch.epoch, first);
  subscription.stage = Subscription::Stage::in_epoch;
  if (subscription.terms.ends_before(epoch.epoch)) subscription.finish();
  const std::vector<BatchIndex> worst = parts_.plans.epochs().worst(epoch.epoch);
  for (std::size_t i = 0; i < worst.size() && i < subscription.terms.worst_first; ++i) {
    subscription.rehearsals.push_back({epoch.epoch, worst[i]});
  }
  wire::SubscribedT answer;
  answer.subscription = key.number.value;
  answer.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(epoch.fingerprint));
  answer.epoch = epoch.epoch.value;
  answer.step = first.value;
  answer.steps = steps;
  answer.batches_per_step = subscription.cursor.share().count;
  answer.world = epoch.plan.world();
  answer.window = subscription.terms.window;
  answer.arena = arena_number().value;
  answer.arena_bytes = arena().bytes();
  answer.terms =
      terms_text(parts_.settings, row_schema(*epoch.snapshot, parts_.settings.recipe.get()));
  send(record_before(subscription), key, encode(std::move(answer)));
  note_began(epoch.epoch);
  ports_.log.note<Event::subscribed>(name(), key.session.value,
                                     wire::EnumNameMode(subscription.terms.mode), epoch.epoch.value,
                                     first.value, subscription.cursor.share().count,
                                     epoch.plan.world(), subscription.terms.window);
}

void Feed::begin_epoch(const SubscriptionKey& key, Subscription& subscription,
                       const EpochSource& source) {
  subscription.stage = Subscription::Stage::in_epoch;
  wire::EpochBeginT begin;
  begin.subscription = key.number.value;
  begin.epoch = source.epoch.value;
  begin.steps = source.plan.steps();
  begin.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(source.fingerprint));
  send(record_before(subscription), key, encode(std::move(begin)));
  note_began(source.epoch);
}

void Feed::end_epoch(const SubscriptionKey& key, Subscription& subscription, std::uint64_t steps) {
  wire::EpochEndT end;
  end.subscription = key.number.value;
  end.epoch = subscription.cursor.epoch().value;
  end.steps = steps;
  end.last = subscription.epochs_left == 1 ||
             subscription.terms.ends_before(Epoch{subscription.cursor.epoch().value + 1});
  subscription.stage = end.last ? Subscription::Stage::over : Subscription::Stage::between_epochs;
  if (subscription.epochs_left > 1) --subscription.epochs_left;
  send(record_before(subscription), key, encode(std::move(end)));
  subscription.asked = false;  // its program has something to go on with
  note_ended(subscription.cursor.epoch());
  subscription.cursor.begin_next_epoch();
  due_.plans = due_.epochs = true;
}

void Feed::deliver(const SubscriptionKey& key, Subscription& subscription,
                   const EpochSource& source, SlotIndex slot) {
  const auto began = WaitingTimes::Time::clock::now();
  const bool rehearsal = !subscription.rehearsals.empty();
  const BatchId id = *parts_.next_of(subscription);
  const auto lease = parts_.desk.give(holder_of(subscription), source, id, rehearsal);
  if (!written(lease)) return;
  // The ledger has a line of it, the journal one of a queue's.
  const std::uint64_t record =
      parts_.desk.keeps_ledger() ? parts_.desk.writer()->last() : record_before(subscription);
  const SlotRef held{parts_.scheduler.slots(), slot};
  const Extent extent = held.of->cache.extent(slot);
  held.of->cache.hold(slot);
  wire::DeliveryT ticket;
  ticket.subscription = key.number.value;
  ticket.lease = lease->value;
  ticket.size = extent.size;
  ticket.epoch = id.epoch.value;
  ticket.step = id.index.value / source.plan.world();
  ticket.index = id.index.value;
  ticket.rehearsal = rehearsal;
  if (subscription.in_queue()) ticket.attempt = queue().attempt(id.index);
  ticket.may_join = parts_.releases_may_join(subscription);
  if (rehearsal) {
    subscription.rehearsals.erase(subscription.rehearsals.begin());
  } else if (!subscription.in_queue()) {
    subscription.cursor.advance();
  }
  count_delivery(subscription, held.of->figures[slot.value], extent.size);

  if (subscription.client.inline_batches) {
    subscription.leases.emplace(*lease, HeldBatch{{}, began, record});
    const std::size_t within = extent.offset - slot.value * arena().slot_bytes();
    auto sent = loop_.awaited([this, held, began] {
      stage_times().add(Stage::deliver, WaitingTimes::Time::clock::now() - began);
      give_back(held);
      settle_soon();
    });
    auto kept = std::make_shared<const flatbuffers::DetachedBuffer>(encode(std::move(ticket)));
    auto send = [this, to = key.session, kept, sent,
                 batch = arena().slot(slot).subspan(within, extent.size)] {
      ports_.send_batch(to, *kept, batch, sent);
    };
    return send_behind(record, key, std::move(send), std::move(sent));
  }
  ticket.arena = arena_number().value;
  ticket.slot = slot.value;
  ticket.offset = extent.offset;
  subscription.leases.emplace(*lease, HeldBatch{held, began, record});
  send(record, key, encode(std::move(ticket)));
  stage_times().add(Stage::deliver, WaitingTimes::Time::clock::now() - began);
}

void Feed::count_delivery(Subscription& subscription, DeliveredFigures& figures,
                          std::size_t bytes) {
  if (subscription.delivered++ == 0) subscription.moved = WaitingTimes::Time::clock::now();
  subscription.delivered_bytes += bytes;
  subscription.asked = false;
  counters_.add(subscription.terms.mode,
                {figures.rows, figures.frames, figures.padded_frames, bytes});
  if (figures.deliveries++ > 0) counters_.add(FeedCounter::batches_shared);
}

void Feed::write_records() {
  parts_.desk.write_elsewhere(
      [this](std::function<RecordWriter::Progress()> work,
             std::function<void(const RecordWriter::Progress&)> told) {
        watch_file_systems();
        loop_.at_files(std::move(work), std::move(told));
      },
      [this](const Error& error) { fail(error); });
}

/// What a subscription of the queue is told may rest on anything that was noted until now.
std::uint64_t Feed::record_before(const Subscription& subscription) const {
  const RecordWriter* const writer = parts_.desk.writer();
  return writer != nullptr && subscription.in_queue() ? writer->last() : 0;
}

void Feed::send_behind(std::uint64_t record, const SubscriptionKey& key, std::function<void()> send,
                       std::function<void()> drop) {
  RecordWriter* const writer = parts_.desk.writer();
  if (writer == nullptr || writer->lets_pass(key, record)) return send();
  writer->hold(key, record, std::move(send), std::move(drop));
}

void Feed::send(std::uint64_t record, const SubscriptionKey& key,
                flatbuffers::DetachedBuffer message) {
  auto kept = std::make_shared<const flatbuffers::DetachedBuffer>(std::move(message));
  send_behind(record, key, [this, to = key.session, kept] { ports_.send(to, *kept); });
}

/// Whether the client may have it.
bool Feed::has_ticket(const HeldBatch& batch) const {
  const RecordWriter* const writer = parts_.desk.writer();
  return writer == nullptr || writer->has_written(batch.record);
}

void Feed::refuse(Subscription& subscription, const Error& error) {
  subscription.finish();
  note_waiting(subscription);
  wire::RefusedT refused;
  refused.code = static_cast<std::uint16_t>(error.code);
  refused.message = error.message;
  refused.subscription = subscription.number.value;
  send(record_before(subscription), subscription.key(), encode(std::move(refused)));
}

void Feed::refuse_all(const Error& error) {
  for (const SubscriptionKey& key : parts_.subscriptions.keys()) {
    const auto one = parts_.subscriptions.edit(key);
    if (!one->is_over()) refuse(*one, error);
  }
}

/// Journal and ledger are closed: nothing may follow what is perhaps half a record, and the feed
/// that is opened in this one's place needs them.
void Feed::fail(const Error& error) {
  if (!parts_.life.fail({error.code, fmt::format("feed {} failed: {}", name(), error.message)}))
    return;
  parts_.desk.close();
  ports_.log.note<Event::feed_failed>(about(Epoch{0}, failure()->message), name(), error.message);
  if (!is_passing(error.code) || !ports_.takes_over()) {
    refuse_all(*failure());
  }
  if (on_state_) on_state_();
}

wire::EventT Feed::about(Epoch epoch, const std::string& text) const {
  wire::EventT event;
  event.feed = name();
  event.epoch = epoch.value;
  event.sequences = data_.snapshot->sequences();
  event.text = text;
  return event;
}

/// Once for each epoch, when the first subscription comes to it, or ends it.
void Feed::note_began(Epoch epoch) {
  if (!parts_.subscriptions.is_first_to_begin(epoch)) return;
  ports_.log.note<Event::epoch_began>(about(epoch), name(), epoch.value);
  look_at_data();
}

void Feed::note_ended(Epoch epoch) {
  if (!parts_.subscriptions.is_first_to_end(epoch)) return;
  ports_.log.note<Event::epoch_ended>(about(epoch), name(), epoch.value);
}

}  // namespace batchwright
