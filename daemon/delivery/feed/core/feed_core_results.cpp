// What a feed makes of what other threads did for it, of timers, and of its configuration.

#include <fmt/format.h>

#include <utility>

#include "daemon/delivery/feed/core/feed_core.h"

namespace batchwright {
namespace {

/// A job that does not say how many of its ranks are on this host has so long to gather here.
constexpr std::chrono::seconds kGathering{5};

}  // namespace

/// New data, and perhaps a new arena: from now on all is assembled there, and what clients hold
/// of the old one stays as it is.
void FeedCore::take(PlanReady event) {
  due_.plans = due_.epochs = due_.all = true;
  if (parts_.life.is_retired()) return;
  const EpochOutline outline = event.planned.outline();
  const Epoch epoch = outline.epoch;
  if (!event.why_not_newer.empty()) {
    log<Event::growth_left_out>(name(), epoch.value, facts_.sequences, event.why_not_newer);
  }
  if (event.slots) {
    parts_.scheduler.grow(std::move(event.slots));
    const Arena& arena = *parts_.scheduler.slots()->arena;
    log<Event::arena_grown>(name(), in_mib(arena.bytes()), in_mib(arena.slot_bytes()));
  }
  if (parts_.settings.follow) parts_.plans.decide(epoch, outline.fingerprint.data);
  if (event.facts) {
    facts_ = std::move(*event.facts);
    parts_.sequences = facts_.sequences;
    log<Event::dataset_grown>(about(epoch), name(), facts_.sequences, epoch.value);
  }
  const bool is_late = parts_.plans.made(std::move(event.planned), now_);
  if (is_late) log<Event::epoch_planned_late>(name(), epoch.value);
  counters_.add(FeedCounter::epochs_planned);
  parts_.note_plans();
  if (parts_.desk.is_open()) advance_queue();
}

void FeedCore::take(const PlanFailed& event) {
  due_.plans = due_.all = true;
  if (parts_.life.is_retired()) return;
  log<Event::epoch_not_planned>(name(), event.epoch.value, event.error.message);
  if (event.error.code == ErrorCode::fingerprint_mismatch) {
    end_without_data(event.epoch, event.error);
  } else {
    parts_.plans.failed(event.epoch, event.error, now_);
  }
}

void FeedCore::take(const PlanOutdated&) {
  parts_.plans.outdated();
  due_.plans = due_.all = true;
}

/// The dataset no longer has anything of the data that this epoch was decided to be of. Clients
/// that need those are told so; the others get what there is. A queue needs them: what its journal
/// calls done is done of them alone.
void FeedCore::end_without_data(Epoch epoch, const Error& error) {
  parts_.plans.data_gone(epoch);
  if (parts_.desk.is_open() && parts_.desk.epoch() == epoch) {
    return fail({ErrorCode::fingerprint_mismatch,
                 fmt::format("journal {}: the queue is in epoch {}: {}; change it back, or remove "
                             "the file to begin the queue anew",
                             parts_.desk.journal().path, epoch.value, error.message)});
  }
  parts_.scheduler.cache().forget_epoch(epoch);
  for (const SubscriptionKey& key : parts_.subscriptions.keys()) {
    const auto one = parts_.subscriptions.edit(key);
    if (one->is_over() || one->cursor.epoch() != epoch) continue;
    if (one->is_bound_to_data()) refuse(*one, error);
  }
}

/// Goes on to the next epoch once each batch of this one is done, and the journal has begun with
/// it.
void FeedCore::advance_queue() {
  QueueService& desk = parts_.desk;
  if (parts_.live) return;  // it has one epoch
  const auto next = desk.next_epoch(batches_of(desk.epoch()));
  if (!next) return;
  const PlannedEpoch* const plan = parts_.plans.find(*next);  // the journal tells of its data
  if (plan == nullptr) {
    due_.plans = true;
    return;
  }
  desk.begin(*next, plan->outline().fingerprint);
}

void FeedCore::take(const Written& event) {
  for (FeedAction& send : parts_.sends.written(event.upto)) act(std::move(send));
  note_not_written(event.failure);
  const auto begun = parts_.desk.written(event.upto);
  if (!begun) return;
  log<Event::queue_epoch_done>(name(), begun->value - 1);
  due_.all = true;
}

void FeedCore::note_not_written(const std::optional<Error>& failure) {
  if (!failure) return;
  // Of a feed that has ended before nothing else says it.
  if (has_failed()) {
    log<Event::feed_failed>(about(Epoch{0}, failure->message), name(), failure->message);
  }
  fail(*failure);
}

/// Whether the epoch was planned again from other data meanwhile; then the batch is of no use.
bool FeedCore::is_of_other_data(const SlotScheduler::Assignment& done, std::uint64_t data) {
  if (!parts_.settings.follow || parts_.plans.data_of(done.id.epoch) == data) return false;
  parts_.scheduler.discard(done);
  if (!has_failed() && parts_.life.first_batch_is_there()) log<Event::feed_ready>(name());
  due_.all = due_.plans = true;
  return true;
}

void FeedCore::take(const BatchReady& event) {
  parts_.scheduler.note_brought_in(event.brought_in_bytes);
  if (is_of_other_data(event.assignment, event.data)) return;
  parts_.scheduler.finished(event.assignment, event.batch);
  count_assembled(event.assignment.id, event.batch);
  note_assembled(event.assignment);
}

void FeedCore::take(const BatchFailed& event) {
  parts_.scheduler.note_brought_in(event.brought_in_bytes);
  if (is_of_other_data(event.assignment, event.data)) return;
  parts_.scheduler.failed(event.assignment, event.error);
  due_.ahead = true;
  const BatchId& id = event.assignment.id;
  const ErrorCode code = event.error.code;
  // Data or memory may come back, and then the feed is opened again; of a file that was overwritten
  // no batch can be had any longer.
  const bool is_gone = code == ErrorCode::store_unavailable || code == ErrorCode::busy ||
                       code == ErrorCode::fingerprint_mismatch;
  if (code == ErrorCode::corrupt_record) counters_.add(FeedCounter::corrupt_records);
  log<Event::batch_not_assembled>(name(), id.epoch.value, id.index.value, event.error.message);
  // No client can begin without this batch, and so trainers are not to be sent here.
  const bool resumed = parts_.desk.is_open() && parts_.desk.epoch() > id.epoch;
  const bool stops_all = code == ErrorCode::corrupt_record && parts_.is_first(id) &&
                         !parts_.life.had_client() && !resumed;
  if (is_gone || stops_all) fail(event.error);
  note_assembled(event.assignment);
}

/// The feed is ready with the first batch that a client can begin with.
void FeedCore::note_assembled(const SlotScheduler::Assignment& done) {
  if (has_failed()) return;
  const bool counts = parts_.life.had_client() || parts_.is_first(done.id);
  if (counts && parts_.life.first_batch_is_there()) log<Event::feed_ready>(name());
  due_.ready.push_back(done.id);
}

void FeedCore::count_assembled(const BatchId& id, const AssembledBatch& batch) {
  counters_.add(FeedCounter::batches_assembled);
  counters_.add(FeedCounter::bytes_assembled, batch.size);
  counters_.add(FeedCounter::sequences_skipped, batch.skipped.size());
  if (parts_.plans.mark_assembled(id)) counters_.add(FeedCounter::batches_reassembled);
  for (const SkippedSequence& skipped : batch.skipped) count_lost(id, skipped);
  if (batch.lost.values != 0) {
    // The first one is told: which data do not fit the dtype. What follows shows in the counter.
    if (counters_.get(FeedCounter::cast_overflows) == 0) {
      log<Event::cast_overflow>(name(), batch.lost.field, batch.lost.ordinal.value, id.epoch.value,
                                id.index.value);
    }
    counters_.add(FeedCounter::cast_overflows, batch.lost.values);
  }
  counters_.add(FeedCounter::noise_left_out, batch.made.noise_left_out);
  counters_.add(FeedCounter::samples_saturated, batch.made.samples_saturated);
}

/// A few bad records are what `skip` is for. Many are another matter than that, such as a damaged
/// disk, and training on what is left would be training on other data.
void FeedCore::count_lost(const BatchId& id, const SkippedSequence& skipped) {
  log<Event::sequence_skipped>(name(), id.epoch.value, id.index.value, skipped.ordinal.value,
                               skipped.reason);
  // Each epoch meets it again.
  PlanStore& plans = parts_.plans;
  if (plans.mark_corrupt(skipped.ordinal)) counters_.add(FeedCounter::corrupt_records);
  const PlannedEpoch* const planned = plans.find(id.epoch);
  if (planned == nullptr) return;
  const std::uint64_t sequences = planned->totals.selected;
  const double share = parts_.settings.max_corrupt_share;
  const std::uint64_t allowed = losses_allowed(share, sequences);
  const std::uint64_t lost = plans.mark_lost(id.epoch, skipped.ordinal);
  if (lost <= allowed) return;
  fail({ErrorCode::corrupt_record,
        fmt::format("{} of the {} sequences of epoch {} are corrupt so far, max_corrupt_share = {} "
                    "allows {}; the last: sequence {}: {}",
                    lost, sequences, id.epoch.value, share, allowed, skipped.ordinal.value,
                    skipped.reason)});
}

void FeedCore::take(const SettingsChanged& event) {
  if (parts_.live && event.limits && !has_failed()) take_limits(*event.limits);
  FeedAdjustments& own = parts_.settings;
  if (own == event.wanted) return;
  own = event.wanted;
  parts_.scheduler.forget_broken();  // what could not be assembled may be so, with a sequence less
  due_.all = due_.plans = true;
}

/// What clients hold stays held: a slot that is not held might be poisoned once a batch on its way
/// to a remote client has left.
void FeedCore::take(const Retired& event) {
  close_records();  // first: what clients are told now waits for no record
  refuse_all(event.error);
  parts_.scheduler.stragglers().clear();
  parts_.subscriptions.clear();
  parts_.life.retire(event.error);  // what comes back from other threads changes nothing any more
}

void FeedCore::take(const TimerDue& event) {
  timers_[static_cast<std::size_t>(event.timer)].reset();
  switch (event.timer) {
    case FeedTimer::plans: due_.plans = true; break;
    case FeedTimer::live:
      if (!has_failed()) parts_.live->time_passed(now_);
      break;
    case FeedTimer::stragglers:
    case FeedTimer::data:
    case FeedTimer::blockage: break;
    case FeedTimer::long_waits: look_at_waits(); break;
    case FeedTimer::returns: {
      const auto returned = parts_.desk.end_keeping(now_, parts_.settings.queue_attempts);
      for (const QueueService::Undone& batch : returned.undone) note_undone(batch);
      if (returned.any) due_.all = true;
      await_returns();
      break;
    }
  }
}

/// Looks once a second, while subscriptions are here, for waits that get long.
void FeedCore::look_at_waits() {
  if (has_failed()) return;
  SlotAdmission& admission = parts_.subscriptions.admission();
  if (admission.expects_unknown() && now_ - parts_.last_subscribed >= kGathering) {
    admission.stop_expecting();
  }
  for (const auto& [key, subscription] : parts_.subscriptions.all()) {
    const bool waits = parts_.waits_for_clients(subscription);
    const auto seconds =
        parts_.subscriptions.edit(key)->long_wait.note(waits, subscription.delivered, now_);
    if (!seconds) continue;
    log<Event::long_wait>(name(), who(subscription), seconds->count(),
                          reason_to_wait(parts_, subscription, now_));
  }
  if (parts_.subscriptions.all().empty()) return;
  set_timer(FeedTimer::long_waits, now_ + LongWait::kLook);
}

}  // namespace batchwright
