// What the pool of a live feed says: what is accepted, what becomes of it, and which steps are cut.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/delivery/feed/live/live_service.h"
#include "daemon/stats/stats.h"

namespace batchwright {
namespace {

wire::Outcome outcome_of(SequenceState state) {
  switch (state) {
    case SequenceState::waiting: return wire::Outcome::waiting;
    case SequenceState::delivered: return wire::Outcome::delivered;
    case SequenceState::done: return wire::Outcome::done;
    case SequenceState::dropped_stale: return wire::Outcome::dropped_stale;
    case SequenceState::abandoned: return wire::Outcome::abandoned;
  }
  return wire::Outcome::unknown;
}

/// What a sequence was dropped for; empty: it was not.
std::optional<LiveDrop> drop_of(const LiveChange& change) {
  const bool is_lost =
      change.state == SequenceState::dropped_stale || change.state == SequenceState::abandoned;
  if (!is_lost) return {};
  if (change.why == "asked") return LiveDrop::abandoned;
  if (change.why == "incomplete") return LiveDrop::incomplete;
  return change.why == "late" ? LiveDrop::late : LiveDrop::stale;
}

}  // namespace

std::uint64_t LiveService::ms(Time time) const {
  const auto since = std::chrono::floor<std::chrono::milliseconds>(time - clock_.began).count();
  return std::max(clock_.now_ms, static_cast<std::uint64_t>(std::max<std::int64_t>(since, 0)));
}

std::uint64_t LiveService::tell(const LiveEvent& event) {
  return pool_.on(event, clock_.now_ms, results_);
}

/// Those whose sequence was accepted offer the next one.
void LiveService::take_results() {
  digest();
  for (auto next = producers_.take_accepted(); !next.empty(); next = producers_.take_accepted()) {
    for (const ProducerId id : next) offer(producers_.at(id));
  }
}

/// What was accepted is known before the steps that have it, and these before it leaves.
void LiveService::digest() {
  const LiveResults results = std::exchange(results_, {});
  for (const LiveChange& change : results.changes) {
    if (change.state == SequenceState::waiting) accepted(change);
  }
  if (spool_) spool_->cut(results.steps, results.changes);
  if (spool_) spool_->groups(results.groups);
  for (const LiveStep& step : results.steps) {
    count_rows(step);
    add_step(step);
  }
  for (const LiveChange& change : results.changes) {
    if (change.state != SequenceState::waiting) changed(change);
  }
  for (const LiveAnswer& answer : results.answers) answered(answer);
}

void LiveService::accepted(const LiveChange& change) {
  LiveProducer& producer = producers_.at(change.producer);
  must(producer.push && producer.push->offered && change.number == producer.next,
       "what is accepted was offered");
  PushUnderWay& push = *producer.push;
  const std::shared_ptr<PushedSequence> sequence = std::exchange(push.offered, nullptr);
  sequence->arrival = change.arrival;
  push.key_at += sequence->key.size();
  ++push.next;
  ++producer.next;
  producer.outcomes.set(change.number, wire::Outcome::waiting);
  asked_.erase(push.event);
  count_accepted(producer, *sequence);
  kept_.add(sequence, producer.id, !push.push.framed);
  producers_.note_accepted(producer);
  if (spool_) spool_->accepted(sequence, change);
}

void LiveService::changed(const LiveChange& change) {
  LiveProducer& producer = producers_.at(change.producer);
  const bool was_settled = spool_ && spool_->is_settled(change.arrival);
  if (!was_settled) producer.outcomes.set(change.number, outcome_of(change.state));
  if (const auto drop = drop_of(change)) {
    ++seen_.counts.dropped.at(static_cast<std::size_t>(*drop));
    seen_.counts.dropped_frames += length_of(*kept_.at(change.arrival));
  }
  if (!producer.key && !producer.may_return) producer.outcomes.forget_settled();
  if (spool_) spool_->changed(change);
  if (!change.left) return;
  // What its record waits for is neither in the pool nor in a step.
  if (spool_ && kept_.is_held(change.arrival)) spool_->left(change.arrival);
  kept_.leave_pool(change.arrival);
}

/// Of an area that the producer had before, it knows nothing.
void LiveService::freed(ProducerId id, const PushedSequence& sequence, bool in_area) {
  if (record_) record_->forget(sequence.arrival);
  if (spool_) spool_->freed(sequence.arrival);
  LiveProducer& producer = producers_.at(id);
  producer.held_bytes -= sequence.bytes();
  if (in_area && producer.key && sequence.memory == producer.area.memory) {
    producers_.note_freed(producer, sequence.number);
  }
}

void LiveService::answered(const LiveAnswer& answer) {
  using Kind = LiveAnswer::Kind;
  if (answer.kind == Kind::end) gate_.end();
  const auto found = asked_.extract(answer.event);
  if (!found || answer.kind == Kind::accepted) return;
  LiveProducer& producer = producers_.at(found.mapped());
  const bool is_push = producer.push && producer.push->event == answer.event;
  if (!is_push) return answer_claim(producer, answer);
  producer.push->offered.reset();
  if (answer.kind == Kind::ended) return finish_push(producer, {}, true);
  const bool is_full = answer.kind == Kind::timed_out;
  if (is_full) producer.outcomes.count_refused_full();
  finish_push(producer,
              is_full ? Error{ErrorCode::timed_out, "the pool had no room within the time limit"}
                      : Error{ErrorCode::invalid_argument, answer.why});
}

/// Those of a step that is cut now, and not of one that a spool had.
void LiveService::count_rows(const LiveStep& step) {
  for (const std::vector<LiveRow>& rows : step.batches) {
    for (const LiveRow& row : rows) {
      if (row.frames == 0) continue;
      seen_.counts.rows_zeroed += row.zeroed ? 1 : 0;
      if (!row.filler) seen_.counts.staleness.add(row.staleness);
    }
  }
}

void LiveService::add_step(const LiveStep& step) {
  std::vector<LiveBatch> batches;
  std::vector<std::uint64_t> arrivals;
  for (const std::vector<LiveRow>& rows : step.batches) {
    batches.push_back(make_batch(step, rows));
    for (const LiveRow& row : rows) {
      if (row.frames != 0) arrivals.push_back(row.arrival);
    }
  }
  kept_.add_step(step.step, std::move(arrivals));
  gate_.add(std::move(batches));
  trainers_.step_cut();
}

/// Its row is that of a lane that has run out in a batch of a dataset.
void LiveService::add_free_lane(std::uint32_t nobody, LiveBatch& batch) {
  batch.rows.push_back({});
  batch.sequences.emplace_back();
  batch.says.versions.push_back(batch.says.version);
  batch.says.versions_newest.push_back(batch.says.version);
  batch.says.groups.push_back(kNoGroup);
  batch.says.producers.push_back(nobody);
  batch.says.numbers.push_back(0);
}

LiveBatch LiveService::make_batch(const LiveStep& step, const std::vector<LiveRow>& rows) {
  LiveBatch batch;
  batch.says.version = step.version;
  std::map<ProducerId, std::uint32_t> places;
  std::optional<std::uint32_t> nobody;  // the place of free lanes
  for (const LiveRow& row : rows) {
    const auto names = static_cast<std::uint32_t>(batch.says.names.size());
    if (row.frames == 0) {
      if (!nobody) batch.says.names.emplace_back();
      add_free_lane(nobody.value_or(names), batch);
      nobody = nobody.value_or(names);
      continue;
    }
    const auto& sequence = kept_.at(row.arrival);
    const auto [place, is_new] = places.try_emplace(row.producer, names);
    if (is_new) batch.says.names.emplace_back(producers_.at(row.producer).shown_name());
    const std::uint32_t length = row.frames;
    const auto weight = static_cast<float>(row.weight);
    const int flags = (row.reset ? kRowReset : 0) | (row.last ? kRowLast : 0);
    batch.rows.push_back(
        {row.arrival, row.start, length, static_cast<std::uint8_t>(flags), 0, weight});
    batch.sequences.push_back(sequence);
    batch.says.versions.push_back(sequence->version);
    batch.says.versions_newest.push_back(sequence->version_newest);
    batch.says.groups.push_back(sequence->group);
    batch.says.producers.push_back(place->second);
    batch.says.numbers.push_back(row.number);
    batch.says.epochs.push_back(sequence->epoch);
    batch.says.zeroed += row.zeroed ? 1 : 0;
    batch.figures.frames += length;
    batch.figures.batch_length = std::max(batch.figures.batch_length, length);
    if (weight != 0) continue;
    ++batch.figures.unweighted_rows;
    batch.figures.unweighted_frames += length;
  }
  batch.figures.rows = static_cast<std::uint32_t>(rows.size());
  const auto& epochs = batch.says.epochs;
  if (std::all_of(epochs.begin(), epochs.end(), [](auto epoch) { return epoch == 0; })) {
    batch.says.epochs.clear();
  }
  return batch;
}

/// Has the pool give it the steps that were cut, so that what it releases counts.
void LiveService::catch_up(LiveTrainer& trainer) {
  const std::uint64_t steps = pool_.steps();
  if (!std::exchange(trainer.joined, true)) trainer.taken = trainer.released = steps;
  while (trainer.taken < steps) {
    tell(LiveTake{trainer.id, trainer.taken, true});
    ++trainer.taken;
  }
}

void LiveService::take(const TrainerKey& key, Step step, bool waits, Time now) {
  pass_time(now);
  LiveTrainer& trainer = trainers_.get(key);
  catch_up(trainer);
  if (step.value == trainer.taken && (!trainer.waits || (waits && !trainer.loop))) {
    trainer.waits = true;
    trainer.loop = waits;
    tell(LiveTake{trainer.id, trainer.taken, !waits});
  }
  take_results();
}

void LiveService::released(const TrainerKey& key, Step step, Time now) {
  LiveTrainer* const trainer = trainers_.find(key);
  if (trainer == nullptr || step.value <= trainer->released) return;
  pass_time(now);
  catch_up(*trainer);
  for (; trainer->released < std::min(step.value, trainer->taken); ++trainer->released) {
    tell(LiveRelease{trainer->id, trainer->released});
  }
  take_results();
}

void LiveService::left(const TrainerKey& key, Time now) {
  const auto trainer = trainers_.remove(key);
  pass_time(now);
  if (trainer && trainer->joined) tell(TrainerGone{trainer->id});
  if (spool_) past_goes_with_the_last();
  take_results();
}

std::string LiveService::reason_to_wait(Time now) const {
  if (const std::size_t bytes = gate_.wanted_slot_bytes(); bytes != 0) {
    return fmt::format("larger slots, of {} bytes, for a batch of the next step", bytes);
  }
  if (waits_for_record()) {
    return fmt::format("its record: {} of what was delivered are to be written to {} first",
                       in_mib(record_->unwritten_bytes()), settings_.record.string());
  }
  return "its producers: " + supply_text(status(now, false));
}

/// Once for each step. What it gives the record stays until it is written: in a producer's area it
/// would be overwritten.
void LiveService::delivered(Step step) {
  if (!record_ || record_->has(step)) return;
  RecordService::Batches batches;
  for (std::uint64_t i = 0; i < settings_.pool.world; ++i) {
    batches.push_back(gate_.source().find({step.value * settings_.pool.world + i}));
    must(batches.back() != nullptr, "a step that is delivered is kept");
  }
  for (const auto& sequence : record_->add(step, batches)) {
    kept_.hold(sequence->arrival);
    if (spool_ && !kept_.in_pool(sequence->arrival)) spool_->left(sequence->arrival);
  }
}

std::vector<RecordedStep> LiveService::take_steps() {
  if (!record_) return {};
  gate_.wait_for_record(record_->unwritten_bytes() > settings_.pool.pool_bytes);
  return record_->take();
}

void LiveService::recorded(std::uint64_t upto) {
  for (const auto& sequence : record_->written(upto)) kept_.let_go(sequence->arrival);
  gate_.wait_for_record(record_->unwritten_bytes() > settings_.pool.pool_bytes);
}

/// Whether steps that are kept take half of what some producer has to write to: with all of it, no
/// more would come, and they would never leave. A look at each producer, if more are kept since the
/// last.
bool LiveService::is_area_crowded() {
  if (!kept_.has_grown()) return false;
  const auto& connected = producers_.connected();
  const bool is_crowded = std::any_of(connected.begin(), connected.end(), [this](const auto& each) {
    const std::size_t area = producers_.at(each.second).area.bytes.size();
    return area != 0 && kept_.area_bytes_beside_pool(each.second) > area / 2;
  });
  if (!is_crowded) kept_.note_looked();
  return is_crowded;
}

void LiveService::keep_from(Step step, std::optional<Step> queued) {
  if (spool_ && spool_->keeps_all(clock_.now_ms)) return;
  std::uint64_t first = trainers_.ask_from(step).value;
  kept_.keep_from(first);
  // The newest that trainers can have is kept, however large, and what is held back behind it.
  const std::uint64_t steps = gate_.source().outline().steps();
  const std::uint64_t most = queued ? std::min(queued->value, steps) : steps;
  const auto is_too_much = [&] {
    const std::uint64_t oldest = kept_.first_step(steps);
    if (oldest < step.value && is_area_crowded()) return true;
    return kept_.bytes_beside_pool() > settings_.pool.pool_bytes && oldest < most &&
           oldest + 1 < steps;
  };
  while (is_too_much()) {
    first = kept_.first_step(steps) + 1;
    kept_.keep_from(first);
  }
  gate_.source().keep_from(first);
  if (record_) record_->keep_from(first_kept());
  if (spool_) release_past(first_kept());
}

}  // namespace batchwright
