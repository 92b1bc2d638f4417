// What a feed makes of its clients' events.

#include "daemon/delivery/feed/core/feed_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace batchwright {

FeedCore::FeedCore(FeedParts parts, const PlannedEpoch& first, DataFacts facts)
    : parts_(std::move(parts)), facts_(std::move(facts)) {
  if (parts_.desk.is_open()) {
    // A queue that was in the first epoch when its data grew goes on with what they were.
    parts_.plans.decide(parts_.desk.epoch(), parts_.desk.journal().fingerprint.data);
  }
  parts_.plans.begin(first);
  parts_.note_plans();
  counters_.add(FeedCounter::epochs_planned);
}

void FeedCore::on(FeedEvent event, Time now) {
  now_ = now;
  last_events_.add(event, now);
  due_.any = true;
  guarded([&] { std::visit([this](auto& one) { take(std::move(one)); }, event); });
}

void FeedCore::note_broken(const std::string& what) {
  if (has_failed()) return;
  log<Event::feed_broken>(name(), what, last_events_.describe());
  fail({ErrorCode::internal, fmt::format("an invariant does not hold: {}", what)});
}

void FeedCore::take(Started) {
  due_.plans = true;
  if (parts_.live && parts_.life.first_batch_is_there()) log<Event::feed_ready>(name());
  if (!parts_.desk.is_open()) return;
  if (parts_.live && parts_.desk.queue().out().empty()) return;
  const JournalState& journal = parts_.desk.journal();
  if (journal.lost_records != 0) {
    log<Event::journal_lost>(name(), journal.path, journal.lost_records, journal.lost_batches);
  }
  const WorkQueue& queue = parts_.desk.queue();
  log<Event::queue_resumed>(name(), queue.epoch().value, queue.done_count(), queue.out().size());
  parts_.desk.keep_all(now_ + parts_.settings.queue_grace);
  await_returns();
}

void FeedCore::take(const Unsubscribed& event) {
  if (!parts_.subscriptions.contains(event.key)) return;
  leave(event.key, {});
  due_.all = due_.epochs = true;
}

void FeedCore::take(const SessionEnded& event) {
  if (parts_.live) parts_.live->session_ended(event.session, now_);
  const std::vector<SubscriptionKey> keys = parts_.subscriptions.keys_of(event.session);
  for (const SubscriptionKey& key : keys) leave(key, event.how);
  if (!keys.empty()) due_.all = due_.epochs = true;
}

void FeedCore::take(const ProcessExited& event) {
  for (const SubscriptionKey& key : parts_.subscriptions.keys_of(event.session)) {
    const auto one = parts_.subscriptions.edit(key);
    one->finish();
    for (auto& [lease, batch] : one->leases) {
      if (batch.slot) give_back(*std::exchange(batch.slot, std::nullopt));
    }
  }
  due_.all = due_.epochs = true;
}

void FeedCore::take(const ArenaReleased& event) {
  const std::vector<SlotRef> slots = parts_.subscriptions.release_orphaned(event.session);
  for (const SlotRef& slot : slots) give_back(slot);
  if (!slots.empty()) due_.all = true;
}

void FeedCore::leave(const SubscriptionKey& key, SessionEnd how) {
  const Subscription& subscription = parts_.subscriptions.at(key);
  parts_.waited_before.add(subscription.waiting, now_);
  std::vector<SlotRef> kept;
  bool begun = how.died;
  for (const auto& [lease, batch] : subscription.leases) {
    if (batch.slot && how.lives) kept.push_back(*batch.slot);
    if (batch.slot && !how.lives) give_back(*batch.slot);
    if (!subscription.in_queue()) continue;
    if (!parts_.sends.has_written(batch.record)) {
      parts_.desk.come_back(lease);  // the client never had it
      continue;
    }
    if (how.may_return) continue;
    if (!begun) {
      parts_.desk.come_back(lease);
      continue;
    }
    const auto undone =
        parts_.desk.died_with(subscription.owner(), lease, parts_.settings.queue_attempts);
    if (!undone) continue;  // that one was done
    note_undone(*undone);
    begun = false;
  }
  parts_.subscriptions.orphan(subscription.client, std::move(kept));
  if (subscription.in_queue() && how.may_return) {
    parts_.desk.keep(subscription.owner(), now_ + parts_.settings.queue_grace);
    await_returns();
  }
  parts_.scheduler.stragglers().forget(key);
  if (parts_.live && !subscription.in_queue()) {
    parts_.live->left(FeedParts::trainer_of(subscription), now_);
  }
  parts_.subscriptions.remove(key);
}

/// Batches of a client that may come back are not given to others at once: it may have done them.
void FeedCore::await_returns() {
  if (const auto next = parts_.desk.next_return()) set_timer(FeedTimer::returns, *next);
}

void FeedCore::take(const Released& event) {
  const Subscription* const found = parts_.subscriptions.find(event.key);
  if (found == nullptr) {
    return counters_.add(FeedCounter::releases_unknown, event.leases.size());
  }
  const bool in_queue = found->in_queue();
  if (in_queue && event.keeps && event.undone) return end_but(event);
  release_leases(*parts_.subscriptions.edit(event.key), event);
  if (has_failed()) return;
  note_released(*found);
  due_.keys.push_back(event.key);
  if (!in_queue) return;
  advance_queue();
  const WorkQueue& queue = parts_.desk.queue();  // for whose epoch's end others may wait
  if (event.undone || queue.exhausted(batches_of(queue.epoch()))) due_.all = true;
}

void FeedCore::release_leases(Subscription& subscription, const Released& event) {
  for (const LeaseNumber lease : event.leases) {
    if (!subscription.leases.contains(lease)) {
      counters_.add(FeedCounter::releases_unknown);
      continue;
    }
    subscription.speak();
    if (event.keeps) {
      parts_.desk.done(holder_of(subscription), lease);
      continue;
    }
    counters_.add(FeedCounter::releases);
    release_lease(subscription, lease, event.undone);
  }
  if (has_failed()) return;
  subscription.moved = now_;
  if (event.waited.count() != 0) subscription.waiting.add_short(event.waited, now_);
  subscription.note_empty_handed();
  if (event.undone && subscription.in_queue()) step_back(subscription);
}

void FeedCore::release_lease(Subscription& subscription, LeaseNumber lease, bool undone) {
  const auto held = subscription.leases.find(lease);
  if (held->second.slot) give_back(*held->second.slot);
  subscription.leases.erase(held);
  ++subscription.released;
  if (!undone) return parts_.desk.released(holder_of(subscription), lease);
  const auto batch =
      parts_.desk.gave_up(holder_of(subscription), lease, parts_.settings.queue_attempts);
  if (batch) note_undone(*batch);
}

/// A worker that alone holds what is left of an epoch is told of its end. When it gives that back
/// undone, the epoch goes on, and may have no other worker.
void FeedCore::step_back(Subscription& subscription) {
  const Epoch epoch = parts_.desk.epoch();
  if (!subscription.is_served() || subscription.cursor.epoch() <= epoch) return;
  subscription.cursor = Cursor(subscription.cursor.share(), epoch, Step{0});
  subscription.stage = Subscription::Stage::in_epoch;
  if (subscription.epochs_left != 0) ++subscription.epochs_left;
}

/// A worker that was closed keeps what its program holds. What it was sent ahead, and has not
/// begun, is for others at once.
void FeedCore::end_but(const Released& held) {
  const std::set<LeaseNumber> stays(held.leases.begin(), held.leases.end());
  const auto one = parts_.subscriptions.edit(held.key);
  for (auto entry = one->leases.begin(); entry != one->leases.end();) {
    if (stays.contains(entry->first)) {
      ++entry;
      continue;
    }
    if (entry->second.slot) give_back(*entry->second.slot);
    parts_.desk.come_back(entry->first);
    entry = one->leases.erase(entry);
  }
  one->finish();
  due_.all = due_.epochs = true;
}

/// A batch that again and again is not done may be one that no worker can do.
void FeedCore::note_undone(const QueueService::Undone& batch) {
  counters_.add(FeedCounter::queue_returns);
  const std::uint64_t epoch = parts_.desk.epoch().value;
  if (batch.set_aside) {
    counters_.add(FeedCounter::queue_set_aside);
    log<Event::queue_batch_set_aside>(name(), batch.index.value, epoch, batch.times);
    return advance_queue();
  }
  if (batch.times < WorkQueue::kOften) return;
  log<Event::queue_batch_returned>(name(), batch.index.value, epoch, batch.times);
}

/// That a client waits may let it have what it was not given in reserve. What is on its way to the
/// client does not count as held: then it waits no more.
void FeedCore::take(const ProgramWaits& event) {
  if (!parts_.subscriptions.contains(event.key)) return;
  const auto one = parts_.subscriptions.edit(event.key);
  one->speak();
  one->asked = one->leases.size() == event.holds;
  due_.keys.push_back(event.key);
}

void FeedCore::take(ReasonAsked event) {
  take(ProgramWaits{event.key, event.holds});
  questions_.push_back(std::move(event));
}

/// After what was sent to it before, so that the client knows from where on these are.
void FeedCore::take(const UpcomingAsked& event) {
  wire::UpcomingT answer;
  answer.subscription = event.key.number.value;
  answer.question = event.question;
  const Subscription* const found = parts_.subscriptions.find(event.key);
  if (found != nullptr && !found->is_over() && !has_failed()) {
    const UpcomingBatches upcoming = parts_.upcoming_of(*found);
    for (std::uint64_t distance = 0; distance < event.count; ++distance) {
      const auto id = upcoming.ahead(distance);
      const PlannedEpoch* const planned = id ? parts_.plans.find(id->epoch) : nullptr;
      if (planned == nullptr) break;
      const BatchSource& batches = *planned->batches;
      const BatchFigures figures = batches.figures(id->index);
      answer.batches.emplace_back(id->epoch.value, id->index.value / parts_.settings.plan.world,
                                  id->index.value, batches.counts(id->index).frames, figures.rows,
                                  figures.batch_length, distance < upcoming.rehearsals.size());
    }
  }
  const std::uint64_t record = found != nullptr ? record_before(*found) : 0;
  send(record, event.key, encode(std::move(answer)));
}

void FeedCore::give_back(const SlotRef& slot) {
  if (!slot.of->cache.release(slot.index)) return;
  note_free();
  if (!parts_.settings.poison) return;
  slot.of->cache.retire(slot.index);
  act(Poison{slot});
}

void FeedCore::take(const SlotPoisoned& event) {
  event.slot.of->cache.abandon(event.slot.index);
  note_free();
}

void FeedCore::note_free() {
  due_.slots = true;
  ++due_.freed;
}

QueueService::Holder FeedCore::holder_of(const Subscription& subscription) {
  return {subscription.client, subscription.number, subscription.owner(), subscription.in_queue()};
}

void FeedCore::note_waiting(Subscription& subscription) {
  subscription.waiting.become(parts_.waiting_for(subscription), now_);
}

void FeedCore::set_timer(FeedTimer timer, Time when) {
  timers_[static_cast<std::size_t>(timer)] = when;
  act(SetTimer{timer, when});
}

/// What a subscription of the queue is told may rest on anything that was noted until now.
std::uint64_t FeedCore::record_before(const Subscription& subscription) const {
  return subscription.in_queue() || parts_.is_spooled() ? parts_.desk.last_record() : 0;
}

void FeedCore::act_after(std::uint64_t record, const SubscriptionKey& to, FeedAction action) {
  if (parts_.sends.lets_pass(to, record)) return act(std::move(action));
  parts_.sends.hold({to, record, std::move(action)});
}

void FeedCore::send(std::uint64_t record, const SubscriptionKey& to,
                    flatbuffers::DetachedBuffer message, bool is_ticket) {
  act_after(record, to, Send{to.session, std::move(message), is_ticket});
}

wire::EventT FeedCore::about(Epoch epoch, const std::string& text) const {
  wire::EventT event;
  event.feed = name();
  event.epoch = epoch.value;
  event.sequences = facts_.sequences;
  event.text = text;
  return event;
}

void FeedCore::refuse(Subscription& subscription, const Error& error) {
  subscription.finish();
  note_waiting(subscription);
  wire::RefusedT refused;
  refused.code = static_cast<std::uint16_t>(error.code);
  refused.message = error.message;
  refused.subscription = subscription.number.value;
  send(record_before(subscription), subscription.key(), encode(std::move(refused)));
}

/// A subscription that is over and was not told so would wait for its end without end.
void FeedCore::refuse_all(const Error& error) {
  for (const SubscriptionKey& key : parts_.subscriptions.keys()) {
    const auto one = parts_.subscriptions.edit(key);
    if (!one->is_over() || unsaid_.contains(key)) refuse(*one, error);
  }
  unsaid_.clear();
  if (!parts_.live) return;
  parts_.live->refuse_all(error);
  for (LiveService::Message& message : parts_.live->take_messages()) {
    act(Send{message.to, std::move(message.bytes)});
  }
}

/// What waited for a record is never sent.
void FeedCore::close_records() {
  parts_.desk.close();
  if (parts_.live && parts_.live->is_recorded()) {
    std::vector<Record> last = take_steps();
    last.emplace_back(CloseFiles{});
    act(RecordSteps{std::move(last)});
  }
  for (HeldSends::Held& held : parts_.sends.stop()) {
    if (const auto* batch = std::get_if<SendBatch>(&held.action)) {
      give_back(batch->slot);
    } else {
      unsaid_.insert(held.to);
    }
  }
}

/// Its files are closed: nothing may follow what is perhaps half a record, and the feed
/// that is opened in this one's place needs them.
void FeedCore::fail(const Error& error) {
  const Error named{error.code, fmt::format("feed {} failed: {}", name(), error.message)};
  if (!parts_.life.fail(named)) return;
  close_records();
  log<Event::feed_failed>(about(Epoch{0}, named.message), name(), error.message);
  act(Failed{error.code});
}

}  // namespace batchwright
