// A live feed that goes on where a spool has it.

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/live/live_service.h"

namespace batchwright {
namespace {

/// Among the trainers, those of the time before the daemon started: no session has this number.
constexpr TrainerKey kPast{SessionId{~decltype(SessionId::value){0}}, {}};

}  // namespace

/// The pool has taken up its part.
void LiveService::resume(const SpooledFeed& spooled, std::chrono::milliseconds grace) {
  must(trainers_.get(kPast).id == spooled.pool.holder, "the first trainer is that of the past");
  trainers_.get(kPast).joined = true;
  producers_.resume(spooled.producers);
  const auto until = static_cast<std::uint64_t>(grace.count());
  spool_.emplace(spooled.counts.kept_from,
                 spooled.steps.empty() ? std::nullopt : std::optional(until));
  for (const SpooledProducer& producer : spooled.producers) {
    if (!producer.is_settled) continue;
    spool_->touched(producer.id, producer.first);
    spool_->touched(producer.id, producer.first + producer.outcomes.size() - 1);
  }
  gate_.source().begin_at(spooled.counts.kept_from);
  if (spooled.counts.mark) trainers_.resume_mark(Step{*spooled.counts.mark});
  std::vector<std::uint64_t> settled_before;  // by producer
  for (const SpooledProducer& producer : spooled.producers) {
    settled_before.push_back(producers_.at(producer.id).outcomes.settled_before());
  }
  for (std::size_t i = 0; i < spooled.sequences.size(); ++i) {
    const ProducerId id = spooled.pool.sequences[i].push.producer;
    LiveProducer& producer = producers_.at(id);
    const auto& sequence = spooled.sequences[i];
    producer.held_bytes += sequence->bytes();
    if (sequence->number < settled_before[id]) spool_->note_settled(sequence->arrival);
    kept_.add(sequence, id, false);
  }
  for (const SpooledStep& step : spooled.steps) add_step(step_of(step));
  for (const LivePoolState::Sequence& sequence : spooled.pool.sequences) {
    if (sequence.left) kept_.leave_pool(sequence.arrival);
  }
  if (spooled.counts.ended) gate_.end();
  digest();
}

/// A step that was cut before, with what its sequences say.
LiveStep LiveService::step_of(const SpooledStep& spooled) const {
  LiveStep step;
  step.step = spooled.step;
  step.version = spooled.version;
  for (const auto& rows : spooled.batches) {
    auto& batch = step.batches.emplace_back();
    for (const SpooledRow& row : rows) {
      if (row.frames == 0) {
        batch.emplace_back();
        continue;
      }
      const PushedSequence& sequence = *kept_.at(row.arrival);
      batch.push_back({.producer = kept_.producer_of(row.arrival),
                       .number = sequence.number,
                       .arrival = row.arrival,
                       .weight = row.weight,
                       .zeroed = row.zeroed,
                       .filler = row.filler,
                       .start = row.start,
                       .frames = row.frames,
                       .reset = row.reset,
                       .last = row.last});
    }
  }
  return step;
}

SpoolCounts LiveService::counts() const {
  return {
      pool_.steps(),         pool_.arrivals(),  pool_.first_ahead(), gate_.source().first_kept(),
      pool_.largest_group(), pool_.has_ended(), pool_.versions()};
}

std::optional<SpoolTurn> LiveService::take_turn() {
  SpoolCounts now = counts();
  if (const auto mark = trainers_.lowest_mark()) now.mark = mark->value;
  if (settings_.pool.step_unit == StepUnit::lanes) now.lanes = pool_.busy_lanes();
  return spool_->take(std::move(now), producers_);
}

/// Once no trainer is here, those of the past are due nothing more, as all others that have gone.
/// Steps that are kept stay for trainers that come.
void LiveService::past_goes_with_the_last() {
  if (trainers_.has_only(kPast)) tell(TrainerGone{trainers_.get(kPast).id});
}

/// Those of the past have released the steps before this one: no slot and no room has them.
void LiveService::release_past(Step first) {
  const LiveTrainer past = trainers_.get(kPast);
  while (const auto step = spool_->release_before(first.value)) tell(LiveRelease{past.id, *step});
  take_results();
}

}  // namespace batchwright
