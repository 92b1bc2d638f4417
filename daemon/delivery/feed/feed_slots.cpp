// The part of Feed that carries out what the scheduler of slots decides: for which clients it is
// asked, what is assembled, and what becomes of it.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/delivery/feed/feed.h"

namespace batchwright {
namespace {

/// Between two looks whether there is still patience with stragglers, where nothing else happens.
constexpr std::chrono::milliseconds kBetweenLooks{5};

}  // namespace

void Feed::assemble_demands() {
  const auto wanted = parts_.demands(due_.turn);
  if (wanted.empty()) return;
  std::vector<Cohort> standing = parts_.cohorts();
  for (const auto& [id, key] : wanted) {
    if (!parts_.scheduler.is_missing(id)) continue;  // it was a queue's next batch, too
    const bool follows_plan = parts_.subscriptions.at(key).follows_plan();
    const auto answer =
        parts_.scheduler.demand({id, follows_plan}, standing, SlotScheduler::Time::clock::now());
    if (answer.assignment) assemble(*answer.assignment, Urgency::demanded);
    if (answer.stragglers.waits) look_again();
    if (answer.stragglers.left_behind.empty()) continue;
    leave_behind(answer.stragglers.left_behind);
    standing = parts_.cohorts();
  }
}

void Feed::assemble_ahead() {
  for (const auto& next :
       parts_.scheduler.ahead(parts_.cohorts(), SlotScheduler::Time::clock::now())) {
    assemble(next, Urgency::ahead);
  }
}

void Feed::leave_behind(const std::vector<Stragglers::LeftBehind>& left_behind) {
  for (const auto& [key, batches] : left_behind) {
    const auto one = parts_.subscriptions.edit(key);
    one->straggler.left_behind = true;
    ports_.log.note<Event::left_behind>(name(), describe(one->client), batches);
  }
}

void Feed::end_turn() {
  Stragglers& stragglers = parts_.scheduler.stragglers();
  if (stragglers.empty()) return;
  for (const SubscriptionKey& key :
       stragglers.end_turn(parts_.cohorts(), Stragglers::Time::clock::now())) {
    parts_.subscriptions.edit(key)->straggler.left_behind = false;
  }
}

/// Nothing else may happen until patience ends.
void Feed::look_again() {
  if (loop_.is_set(FeedLoop::Alarm::stragglers)) return;
  loop_.set(FeedLoop::Alarm::stragglers, FeedLoop::Time::clock::now() + kBetweenLooks,
            [this] { settle(); });
}

void Feed::assemble(const SlotScheduler::Assignment& next, Urgency urgency) {
  stage_times().add(Stage::wait_for_slot, next.waited);
  watch_file_systems();
  const auto epoch = parts_.plans.find(next.id.epoch);
  read_ahead(*epoch, next.id.index);
  const std::uint64_t data = epoch->fingerprint.data;
  auto done = loop_.brought_back(
      [this, next, data, source = std::weak_ptr(epoch)](Result<AssembledBatch> batch) {
        if (const auto used = source.lock()) ports_.readahead.used(name(), used, next.id.index);
        const bool outdated = parts_.settings.follow && parts_.plans.data_of(next.id.epoch) != data;
        outdated ? discard(next) : assembled(next, std::move(batch));
      });
  ports_.assembler.submit(parts_.plans.epochs().batches(next.id.epoch), style_, next.id.index,
                          next.slot.of->arena->slot(next.slot.index), std::move(done), urgency);
}

/// The epoch is planned anew from other data meanwhile.
void Feed::discard(const SlotScheduler::Assignment& done) {
  parts_.scheduler.discard(done);
  if (!failure()) note_first_batch();
  pump();
}

/// The feed is ready.
void Feed::note_first_batch() {
  if (!parts_.life.first_batch_is_there()) return;
  ports_.log.note<Event::feed_ready>(name());
  if (on_state_) on_state_();
}

void Feed::read_ahead(const EpochSource& epoch, BatchIndex index) {
  const auto next = parts_.plans.find(Epoch{epoch.epoch.value + 1});
  parts_.scheduler.note_brought_in(style_->times->brought_in_bytes());
  for (const BatchId& wanted : parts_.scheduler.pages_wanted_after(
           {epoch.epoch, index}, epoch.plan.batches(), next ? next->plan.batches() : 0)) {
    ports_.readahead.will_need(name(),
                               wanted.epoch == epoch.epoch ? parts_.plans.find(epoch.epoch) : next,
                               wanted.index, style_->times);
  }
}

void Feed::assembled(const SlotScheduler::Assignment& done, Result<AssembledBatch> batch) {
  due_.slots = true;
  if (batch) {
    parts_.scheduler.finished(done, *batch);
    count_assembled(done.id, *batch);
  } else {
    not_assembled(done, batch.error());
  }
  if (!failure() && (parts_.life.had_client() || is_first(done.id))) note_first_batch();
  if (!failure()) serve_all(parts_.subscriptions.wanting(done.id));
  settle();
}

void Feed::not_assembled(const SlotScheduler::Assignment& done, const Error& error) {
  parts_.scheduler.failed(done, error);
  // Data or memory may come back, and then the feed is opened anew; of a file that was overwritten
  // no batch can be had any longer.
  const bool is_gone = error.code == ErrorCode::store_unavailable ||
                       error.code == ErrorCode::busy ||
                       error.code == ErrorCode::fingerprint_mismatch;
  if (error.code == ErrorCode::corrupt_record) counters_.add(FeedCounter::corrupt_records);
  ports_.log.note<Event::batch_not_assembled>(name(), done.id.epoch.value, done.id.index.value,
                                              error.message);
  if (is_gone || bars_all(done.id, error)) fail(error);
}

/// Whether no client can begin without this batch, and so trainers are not to be sent here.
bool Feed::bars_all(const BatchId& id, const Error& error) const {
  const bool resumed = parts_.desk.is_open() && parts_.desk.epoch() > id.epoch;
  return error.code == ErrorCode::corrupt_record && is_first(id) && !parts_.life.had_client() &&
         !resumed;
}

bool Feed::is_first(const BatchId& id) const {
  return id == BatchId{first_epoch().epoch, BatchIndex{0}};
}

void Feed::count_assembled(const BatchId& id, const AssembledBatch& batch) {
  counters_.add(FeedCounter::batches_assembled);
  counters_.add(FeedCounter::bytes_assembled, batch.size);
  counters_.add(FeedCounter::sequences_skipped, batch.skipped.size());
  if (parts_.plans.epochs().mark_assembled(id)) counters_.add(FeedCounter::batches_reassembled);
  for (const SkippedSequence& skipped : batch.skipped) count_lost(id, skipped);
  if (batch.lost.values != 0) count_overflows(id, batch.lost);
  counters_.add(FeedCounter::noise_left_out, batch.made.noise_left_out);
  counters_.add(FeedCounter::samples_saturated, batch.made.samples_saturated);
}

/// The first one is told: which data do not fit the dtype. What follows shows in the counter.
void Feed::count_overflows(const BatchId& id, const CastLoss& lost) {
  if (counters_.get(FeedCounter::cast_overflows) == 0) {
    ports_.log.note<Event::cast_overflow>(name(), lost.field, lost.ordinal.value, id.epoch.value,
                                          id.index.value);
  }
  counters_.add(FeedCounter::cast_overflows, lost.values);
}

/// A few bad records are what `skip` is for. Many are another matter than that, such as a damaged
/// disk, and training on what is left would be training on other data.
void Feed::count_lost(const BatchId& id, const SkippedSequence& skipped) {
  ports_.log.note<Event::sequence_skipped>(name(), id.epoch.value, id.index.value,
                                           skipped.ordinal.value, skipped.reason);
  // Each epoch meets it again.
  if (parts_.plans.epochs().mark_corrupt(skipped.ordinal))
    counters_.add(FeedCounter::corrupt_records);
  const auto epoch = parts_.plans.find(id.epoch);
  if (!epoch) return;
  const std::uint64_t sequences = epoch->plan.counts().selected;
  const std::uint64_t allowed = losses_allowed(parts_.settings.max_corrupt_share, sequences);
  const std::uint64_t lost = parts_.plans.epochs().mark_lost(id.epoch, skipped.ordinal);
  if (lost <= allowed) return;
  fail({ErrorCode::corrupt_record,
        fmt::format("{} of the {} sequences of epoch {} are corrupt so far, max_corrupt_share = {} "
                    "allows {}; the last: sequence {}: {}",
                    lost, sequences, id.epoch.value, parts_.settings.max_corrupt_share, allowed,
                    skipped.ordinal.value, skipped.reason)});
}

}  // namespace batchwright
