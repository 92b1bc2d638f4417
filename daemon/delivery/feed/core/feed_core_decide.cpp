// What a feed does next: it hands out what is ready, plans, assembles what is waited for, and
// assembles ahead.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "daemon/delivery/feed/core/feed_core.h"

namespace batchwright {
namespace {

/// Between two looks whether there is still patience with stragglers, where nothing else happens.
constexpr std::chrono::milliseconds kBetweenLooks{5};

}  // namespace

void FeedCore::decide(Time now, std::vector<FeedAction>& actions) {
  now_ = now;
  due_.any = false;
  guarded([this] { follow_up(); });
  if (auto records = parts_.desk.take_records(); !records.empty()) {
    act(WriteRecords{std::move(records)});
  }
  if (auto steps = take_steps(); !steps.empty()) act(RecordSteps{std::move(steps)});
  std::move(actions_.begin(), actions_.end(), std::back_inserter(actions));
  actions_.clear();
}

/// What is ready is handed out first, and only then is assembled what is waited for, and then what
/// comes next. The other way round, a client that waits could take the slot of a batch that is
/// ready for the next in line, and lose its own in turn, without end.
void FeedCore::follow_up() {
  due_.ahead |= due_.all || due_.epochs;
  if (!has_failed()) hand_out();
  if (!has_failed() && parts_.live) tend_live();
  answer_questions();
  if (!has_failed()) {
    if (due_.epochs || due_.plans) {
      const PlanNeeds needs = parts_.plan_needs();
      if (std::exchange(due_.epochs, false)) forget_epochs(needs);
      if (std::exchange(due_.plans, false)) request_plan(needs);
    }
    ++due_.turn;
    assemble_demands();
    assemble_ahead();
  }
  const SlotCache& cache = parts_.scheduler.cache();
  must(cache.held() <= cache.size(), "no more slots are held than there are");
}

/// An event reaches those that it concerns, and then those that could have had a batch if others
/// had held less, or been further.
void FeedCore::hand_out() {
  const std::vector<SubscriptionKey> keys = std::exchange(due_.keys, {});
  const std::vector<BatchId> ready = std::exchange(due_.ready, {});
  if (std::exchange(due_.all, false)) {
    serve_all(parts_.subscriptions.keys());
  } else {
    for (const SubscriptionKey& key : keys) serve(key);
    for (const BatchId& id : ready) serve_all(parts_.subscriptions.wanting(id));
  }
  while (const auto leading = parts_.subscriptions.leading_once_slowest_moved()) {
    serve_all(*leading);
  }
  serve_all(parts_.subscriptions.blocked_once_loosened(std::exchange(due_.slots, false)));
}

/// Each time beginning with another.
void FeedCore::serve_all(std::vector<SubscriptionKey> keys) {
  if (keys.empty()) return;
  std::rotate(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(due_.turn++ % keys.size()),
              keys.end());
  for (const SubscriptionKey& key : keys) serve(key);
}

void FeedCore::serve(const SubscriptionKey& key) {
  bool goes_on = !has_failed() && parts_.subscriptions.contains(key);
  while (goes_on) {
    const auto one = parts_.subscriptions.edit(key);
    one->blocked_by = BlockedBy::nothing;
    goes_on = !one->is_over() && !has_failed() && serve_next(*one);
    if (!goes_on) note_waiting(*one);
  }
}

/// One event for one subscription; false when it has to wait.
bool FeedCore::serve_next(Subscription& subscription) {
  const PlannedEpoch* const planned = parts_.plans.find(subscription.cursor.epoch());
  if (planned == nullptr) {
    const Error* error = parts_.plans.refusal(subscription.cursor.epoch(), now_);
    if (error != nullptr) refuse(subscription, *error);
    return false;
  }
  const EpochOutline epoch = planned->outline();
  if (subscription.stage == Subscription::Stage::applied) {
    accept(subscription, *planned);
    return true;
  }
  if (subscription.stage == Subscription::Stage::between_epochs) begin_epoch(subscription, epoch);
  if (parts_.is_over(subscription, epoch)) {
    end_epoch(subscription, epoch.steps());
    return true;
  }
  const auto id = parts_.next_of(subscription);
  if (id && parts_.live && refuse_if_gone(subscription, *id)) return false;
  if (!subscription.has_credit()) return false;
  if (!id) {
    if (parts_.live) await_step(subscription);
    return false;
  }
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
  const SlotCache& cache = parts_.scheduler.cache();
  const auto slot = cache.find(*id);
  if (!slot || cache.state(*slot) != SlotState::ready) return false;
  deliver(subscription, *planned, *slot);
  return true;
}

void FeedCore::accept(Subscription& subscription, const PlannedEpoch& planned) {
  const EpochOutline epoch = planned.outline();
  // Steps that were cut and wait for larger slots, or for the record, can be asked for.
  const std::uint64_t steps = parts_.live ? parts_.live->steps_cut() : epoch.steps();
  if (subscription.terms.anywhere) subscription.terms.first_step = parts_.live_start(subscription);
  const Step first = subscription.terms.first_step;
  if (first.value > steps) {
    return refuse(subscription, {ErrorCode::invalid_argument,
                                 fmt::format("step {} of epoch {}, which has {} steps", first.value,
                                             epoch.epoch.value, steps)});
  }
  subscription.cursor = Cursor(subscription.cursor.share(), epoch.epoch, first);
  subscription.stage = Subscription::Stage::in_epoch;
  if (subscription.terms.ends_before(epoch.epoch)) subscription.finish();
  due_.ahead = true;
  for (std::size_t i = 0; i < planned.worst.size() && i < subscription.terms.worst_first; ++i) {
    subscription.rehearsals.push_back({epoch.epoch, planned.worst[i]});
  }
  const SlotGeneration& slots = *parts_.scheduler.slots();
  wire::SubscribedT answer;
  answer.subscription = subscription.number.value;
  answer.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(epoch.fingerprint));
  answer.epoch = epoch.epoch.value;
  answer.step = first.value;
  answer.steps = steps;
  answer.batches_per_step = subscription.cursor.share().count;
  answer.world = epoch.world;
  answer.window = subscription.terms.window;
  answer.arena = slots.number.value;
  answer.arena_bytes = slots.arena->bytes();
  answer.terms = facts_.terms;
  send(record_before(subscription), subscription.key(), encode(std::move(answer)));
  note_began(epoch.epoch);
  log<Event::subscribed>(name(), subscription.client.session.value,
                         wire::EnumNameMode(subscription.terms.mode), epoch.epoch.value,
                         first.value, subscription.cursor.share().count, epoch.world,
                         subscription.terms.window);
}

/// Once for each epoch, when the first subscription comes to it.
void FeedCore::note_began(Epoch epoch) {
  if (!parts_.subscriptions.is_first_to_begin(epoch)) return;
  log<Event::epoch_began>(about(epoch), name(), epoch.value);
  act(LookAtData{});
}

void FeedCore::begin_epoch(Subscription& subscription, const EpochOutline& outline) {
  subscription.stage = Subscription::Stage::in_epoch;
  due_.ahead = true;
  wire::EpochBeginT begin;
  begin.subscription = subscription.number.value;
  begin.epoch = outline.epoch.value;
  begin.steps = outline.steps();
  begin.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(outline.fingerprint));
  send(record_before(subscription), subscription.key(), encode(std::move(begin)));
  note_began(outline.epoch);
}

void FeedCore::end_epoch(Subscription& subscription, std::uint64_t steps) {
  const Epoch epoch = subscription.cursor.epoch();
  wire::EpochEndT end;
  end.subscription = subscription.number.value;
  end.epoch = epoch.value;
  end.steps = steps;
  end.last = subscription.epochs_left == 1 || parts_.live ||
             subscription.terms.ends_before(Epoch{epoch.value + 1});
  subscription.stage = end.last ? Subscription::Stage::over : Subscription::Stage::between_epochs;
  if (subscription.epochs_left > 1) --subscription.epochs_left;
  send(record_before(subscription), subscription.key(), encode(std::move(end)));
  subscription.asked = false;  // its program has something to go on with
  if (parts_.subscriptions.is_first_to_end(epoch)) {
    log<Event::epoch_ended>(about(epoch), name(), epoch.value);
  }
  subscription.cursor.begin_next_epoch();
  due_.plans = due_.epochs = true;
}

void FeedCore::deliver(Subscription& subscription, const PlannedEpoch& planned, SlotIndex slot) {
  const bool rehearsal = !subscription.rehearsals.empty();
  const BatchId id = *parts_.next_of(subscription);
  const auto lease = parts_.desk.give(holder_of(subscription), *planned.batches, id, rehearsal);
  if (!lease) return fail(lease.error());
  const SubscriptionKey key = subscription.key();
  // The ledger has a line of it, the journal one of a queue's.
  const std::uint64_t record =
      parts_.desk.keeps_ledger() ? parts_.desk.last_record() : record_before(subscription);
  const SlotRef held{parts_.scheduler.slots(), slot};
  const Extent extent = held.of->cache.extent(slot);
  held.of->cache.hold(slot);
  wire::DeliveryT ticket;
  ticket.subscription = key.number.value;
  ticket.lease = lease->value;
  ticket.size = extent.size;
  ticket.epoch = id.epoch.value;
  ticket.step = id.index.value / parts_.settings.plan.world;
  ticket.index = id.index.value;
  ticket.rehearsal = rehearsal;
  if (subscription.in_queue()) ticket.attempt = parts_.desk.queue().attempt(id.index);
  ticket.may_join = parts_.releases_may_join(subscription);
  if (rehearsal) {
    subscription.rehearsals.erase(subscription.rehearsals.begin());
  } else if (!subscription.in_queue()) {
    subscription.cursor.advance();
  }
  if (parts_.live) parts_.live->delivered(Step{ticket.step});
  count_delivery(subscription, held.of->figures[slot.value], extent.size);
  const bool is_sent = subscription.client.inline_batches;
  const bool is_new = subscription.leases
                          .emplace(*lease, HeldBatch{is_sent ? std::nullopt : std::optional(held),
                                                     now_, record, Step{ticket.step}})
                          .second;
  must(is_new, "a lease is given once");
  must(subscription.leases.size() <= subscription.terms.window,
       "a client holds no more batches than its window");
  if (is_sent) {
    return act_after(record, key, SendBatch{key.session, encode(std::move(ticket)), held, extent});
  }
  ticket.arena = held.of->number.value;
  ticket.slot = slot.value;
  ticket.offset = extent.offset;
  send(record, key, encode(std::move(ticket)), true);
}

void FeedCore::count_delivery(Subscription& subscription, DeliveredFigures& figures,
                              std::size_t bytes) {
  if (subscription.delivered++ == 0) subscription.moved = now_;
  subscription.delivered_bytes += bytes;
  subscription.asked = false;
  counters_.add(subscription.terms.mode,
                {figures.rows, figures.frames, figures.padded_frames, bytes});
  if (figures.deliveries++ > 0) counters_.add(FeedCounter::batches_shared);
}

void FeedCore::answer_questions() {
  for (const ReasonAsked& question : std::exchange(questions_, {})) {
    const Subscription* const found = parts_.subscriptions.find(question.key);
    if (found == nullptr) continue;
    wire::WaitingT answer;
    answer.subscription = question.key.number.value;
    answer.reason = question.blocked ? *question.blocked : reason_to_wait(parts_, *found, now_);
    act(Send{question.key.session, encode(std::move(answer))});
  }
}

/// Asks for one plan, if one is missing: of an epoch that a client stands in, or else of the one
/// behind it, so that no epoch begins with a pause. The choice is made again after each plan, for
/// by then the client that wanted another may be gone.
void FeedCore::request_plan(const PlanNeeds& needs) {
  PlanStore& plans = parts_.plans;
  if (plans.is_planning()) return;
  const auto choice = plans.next(needs, parts_.most_plans(), now_);
  // While one is missing, whose turn it is depends on which clients could take a batch.
  due_.plans = plans.misses_any(needs);
  if (choice.evict && needs.stood_in.contains(*choice.evict)) {
    log<Event::plans_take_turns>(name(), needs.stood_in.size(), parts_.most_plans());
  }
  if (choice.evict) parts_.note_plans();
  if (choice.plan) {
    must(plans.is_planning(), "one plan is under way");
    return act(MakePlan{*choice.plan, plans.data_of(*choice.plan)});
  }
  if (choice.look_again && timer_of(FeedTimer::plans) != choice.look_again) {
    set_timer(FeedTimer::plans, *choice.look_again);
  }
}

void FeedCore::forget_epochs(const PlanNeeds& needs) {
  PlanStore& plans = parts_.plans;
  std::vector<PlannedEpoch> evicted;
  parts_.scheduler.forget_broken_beside(plans.keep(needs, evicted));
  parts_.note_plans();
  if (!parts_.settings.follow) return;
  if (!evicted.empty()) act(FreePlans{std::move(evicted)});
  // What is assembled of an epoch goes with the knowledge of what data it is of.
  SlotCache& cache = parts_.scheduler.cache();
  const auto forgotten = plans.forget_data(
      [&](Epoch epoch) { return needs.next.contains(epoch) || cache.holds_of(epoch); });
  for (const Epoch epoch : forgotten) cache.forget_epoch(epoch);
}

void FeedCore::assemble_demands() {
  const auto wanted = parts_.demands(due_.turn);
  std::vector<Cohort> standing;
  if (!wanted.empty()) standing = parts_.cohorts();
  for (const auto& [id, key] : wanted) {
    if (!parts_.scheduler.is_missing(id)) continue;  // it was a queue's next batch, too
    const bool follows_plan = parts_.subscriptions.at(key).follows_plan();
    const auto answer = parts_.scheduler.demand({id, follows_plan}, standing, now_);
    if (answer.assignment) assemble(*answer.assignment, Urgency::demanded);
    // Nothing else may happen until patience ends.
    if (answer.stragglers.waits && !is_set(FeedTimer::stragglers)) {
      set_timer(FeedTimer::stragglers, now_ + kBetweenLooks);
    }
    for (const auto& [straggler, batches] : answer.stragglers.left_behind) {
      const auto one = parts_.subscriptions.edit(straggler);
      one->straggler.left_behind = true;
      log<Event::left_behind>(name(), describe(one->client), batches);
    }
    if (!answer.stragglers.left_behind.empty()) standing = parts_.cohorts();
  }
  Stragglers& stragglers = parts_.scheduler.stragglers();
  if (stragglers.empty()) return;
  for (const SubscriptionKey& key : stragglers.end_turn(parts_.cohorts(), now_)) {
    parts_.subscriptions.edit(key)->straggler.left_behind = false;
  }
}

/// While all clients have enough to go on with, a group of slots is filled at once.
void FeedCore::assemble_ahead() {
  SlotScheduler& scheduler = parts_.scheduler;
  const bool is_due = due_.ahead || due_.freed >= scheduler.group();
  if (!is_due && !parts_.subscriptions.any_short()) return;
  due_.freed = 0;
  for (const auto& next : scheduler.ahead(parts_.cohorts(), now_)) assemble(next, Urgency::ahead);
  due_.ahead = scheduler.is_busy();
}

void FeedCore::assemble(const SlotScheduler::Assignment& next, Urgency urgency) {
  const Epoch epoch = next.id.epoch;
  const PlannedEpoch& planned = *parts_.plans.find(epoch);
  const PlannedEpoch* const after = parts_.plans.find(Epoch{epoch.value + 1});
  // What a live feed has lies in memory.
  const std::uint64_t stored = parts_.live ? 0 : planned.outline().batches;
  for (const BatchId& wanted : parts_.scheduler.pages_wanted_after(
           next.id, stored, after != nullptr ? after->outline().batches : 0)) {
    act(ReadAhead{wanted.epoch == epoch ? planned.source : after->source, wanted.index});
  }
  act(Assemble{next, planned.outline().fingerprint.data, planned.source, planned.batches, urgency});
}

}  // namespace batchwright
