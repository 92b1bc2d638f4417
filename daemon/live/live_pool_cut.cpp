#include <algorithm>
#include <tuple>

#include "daemon/live/choose.h"
#include "daemon/live/live_pool.h"
#include "formats/base/base.h"

// When a step is cut, and what it holds.

namespace batchwright {

/// Cuts the next step if it is time to.
bool LivePool::cut() {
  const Lanes& lanes = units_.lanes();
  if (ended_ && units_.ready().units == 0 && lanes.busy() == 0) {
    const auto kept = units_.kept_by_step();
    for (const auto& [at, id] : kept) drop(id, SequenceState::done, "");
    for (const std::uint64_t event : trainers_.end()) answer(LiveAnswer::Kind::end, event, 0, {});
  }
  const bool can_be_short = trainers_.loop_waits() && enough();
  if (!can_be_short) {
    lingers_since_ms_.reset();
  } else if (!lingers_since_ms_) {
    lingers_since_ms_ = now_ms_;
  }
  if (!trainers_.wanting() || (!ended_ && !enough())) return false;
  const std::uint64_t need = ended_ ? settings_.step : settings_.fresh();
  const auto why = cut_reason(need);
  if (!why) return false;
  const Due due = this->due();
  if (!ended_ && due.waits && !pressed()) return false;

  const auto units = choose_units(settings_, units_, trainers_.steps(), due_units(due), need);
  must(!units.empty() || lanes.busy() != 0, "a step that is cut has a row");
  if (has_row_that_counts(units)) {
    make_step(units, *why);
    return true;
  }
  for (const UnitId id : units) drop(id, SequenceState::dropped_stale, "stale");
  clear_lanes();
  return true;
}

/// Whether the step has a row that is not too stale. Without one it is of no use.
bool LivePool::has_row_that_counts(const std::vector<UnitId>& units) const {
  if (settings_.stale != StalePolicy::zero) return true;
  const auto counts = [this](SequenceId id) {
    const Age age = versions_.age_of(units_.sequence(id).origin);
    return !settings_.too_stale(versions_.staleness(age));
  };
  for (const UnitId id : units) {
    for (SequenceId at = units_.unit(id).first; at != kNoId; at = units_.sequence(at).next) {
      if (counts(at)) return true;
    }
  }
  for (const Lane& lane : units_.lanes().all()) {
    if (!lane.is_free() && counts(lane.sequence)) return true;
  }
  return false;
}

/// Why a step is cut now, with enough rows; empty: it is not.
std::optional<CutReason> LivePool::cut_reason(std::uint64_t need) const {
  const UnitSums& ready = units_.ready();
  const std::uint64_t busy = units_.lanes().busy();
  if (enough() && busy + step_total(settings_, ready) >= need &&
      busy + step_total(settings_, ready + units_.kept()) >= settings_.step) {
    return CutReason::full;
  }
  if (ended_) return CutReason::end;
  if (trainers_.loop_waits() && pressed()) return CutReason::pool;
  if (lingers_since_ms_ && settings_.linger_ms &&
      now_ms_ >= *lingers_since_ms_ + *settings_.linger_ms) {
    return CutReason::linger;
  }
  if (starved()) return CutReason::starved;
  return std::nullopt;
}

/// The pool is full, and nothing that it keeps room for can get in.
bool LivePool::pressed() const {
  if (blocked_.empty()) return false;
  if (in_flight() == 0) return true;
  for (const auto& [event, waiting] : blocked_.all()) {
    if (growth(waiting.what) == 0) return true;
  }
  return false;
}

/// What is ready and in flight, the stalest first.
LivePool::Levels LivePool::levels() const {
  const Amounts amounts = this->amounts();
  const bool waits = settings_.paced();
  Levels levels;
  for (const AgeClass* cohort : units_.stalest_first()) {
    if (settings_.too_stale(cohort->staleness)) continue;
    Level& level = levels[cohort->staleness];
    level.ready += amounts.of(cohort->ready_sums);
    if (waits) level.open += amounts.of(cohort->begun_sums);
  }
  for (const auto& [age, coming] : claims_.coming_by_age()) {
    const std::uint64_t staleness = versions_.staleness(age);
    if (waits && !settings_.too_stale(staleness)) levels[staleness].open += coming.amount;
  }
  return levels;
}

LivePool::Due LivePool::due() const {
  if (!settings_.bounded()) return {};
  if (units_.lanes().exist()) return {.waits = lanes_wait()};
  const Amounts amounts = this->amounts();
  const Levels levels = this->levels();
  Due due;
  std::int64_t total = 0;
  for (const auto& [staleness, level] : levels) {
    total += static_cast<std::int64_t>(level.ready + level.open);
    const auto in_time = static_cast<std::int64_t>(*settings_.max_staleness - staleness) -
                         static_cast<std::int64_t>(trainers_.ahead());
    due.amount = std::max(due.amount, total - amounts.room_in(in_time));
  }
  due.amount = std::min(due.amount, amounts.full_step());
  std::int64_t left = due.amount;
  for (const auto& [staleness, level] : levels) {
    left -= static_cast<std::int64_t>(level.ready);
    if (left <= 0) break;
    due.least_staleness = staleness;
    due.waits = level.open != 0;
    if (due.waits) return due;
  }
  due.least_staleness = 0;
  return due;
}

/// The units that are due and ready, the stalest first.
std::vector<UnitId> LivePool::due_units(const Due& due) const {
  std::vector<UnitId> units;
  StalestFirst ready(units_, &AgeClass::ready);
  for (std::int64_t left = due.amount; left > 0;) {
    const auto [id, staleness] = ready.next();
    if (id == kNoId || staleness < due.least_staleness) break;
    if (settings_.too_stale(staleness)) continue;
    left -= static_cast<std::int64_t>(amounts().of(units_.unit(id).sums));
    units.push_back(id);
  }
  return units;
}

void LivePool::make_step(const std::vector<UnitId>& units, CutReason why) {
  LiveStep step{.step = trainers_.steps(),
                .at_ms = now_ms_,
                .after = events_,
                .version = versions_.current(),
                .why = why,
                .batches = {}};
  const bool has_lanes = units_.lanes().exist();
  std::vector<SequenceId> sequences;
  for (const auto& rows : has_lanes ? rows_of_lanes(units) : rows_of(units)) {
    step.batches.push_back(batch_of(rows));
    for (const StepRow& row : rows) {
      if (row.counts && row.sequence != kNoId) sequences.push_back(row.sequence);
    }
  }
  for (const SequenceId id : sequences) ++units_.sequence(id).open_steps;
  results_->steps.push_back(std::move(step));

  has_lanes ? move_lanes(units) : settle_units(units);
  lingers_since_ms_.reset();
  const std::uint64_t number = trainers_.steps();
  for (const std::uint64_t event : trainers_.add_step(std::move(sequences))) {
    answer(LiveAnswer::Kind::step, event, number, {});
  }
}

/// The batches of a step of these units.
std::vector<std::vector<StepRow>> LivePool::rows_of(const std::vector<UnitId>& units) const {
  std::vector<std::vector<StepRow>> items;
  for (const UnitId id : units) {
    if (settings_.groups == LiveGroups::batch) items.emplace_back();
    for (const SequenceId member : units_.members(id)) {
      const LiveSequence& sequence = units_.sequence(member);
      if (settings_.groups != LiveGroups::batch) items.emplace_back();
      items.back().push_back({member, sequence.length, sequence.arrival});
    }
  }
  return cut_step(settings_, trainers_.steps(), std::move(items));
}

/// The units are in the step: they leave the pool, or are kept to be delivered again.
void LivePool::settle_units(const std::vector<UnitId>& units) {
  for (const UnitId id : units) {
    units_.lift(id);
    LiveUnit& unit = units_.unit(id);
    ++unit.given;
    unit.last_step = trainers_.steps();
    if (unit.group) note_closed(*unit.group, SequenceState::abandoned);
    if (unit.given == settings_.reuse || settings_.too_stale(versions_.staleness(unit.age))) {
      drop(id, SequenceState::done, "");
      continue;
    }
    units_.place(id);
    for (const SequenceId member : units_.members(id)) {
      report(units_.sequence(member), SequenceState::delivered, "");
    }
  }
}

/// The rows of a batch with their weights: of the most stale, or of those too stale, it is 0.
std::vector<LiveRow> LivePool::batch_of(const std::vector<StepRow>& rows) const {
  std::vector<LiveRow> batch;
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::size_t>> stalest;  // rows that count
  for (const StepRow& row : rows) {
    if (row.sequence == kNoId) {  // as a lane that has run out is in the batches of a dataset
      batch.push_back({.weight = 1.0});
      continue;
    }
    const LiveSequence& sequence = units_.sequence(row.sequence);
    const std::uint64_t staleness = versions_.staleness(versions_.age_of(sequence.origin));
    if (row.counts) stalest.emplace_back(~staleness, row.arrival, batch.size());
    const bool zeroed =
        row.counts && settings_.stale == StalePolicy::zero && settings_.too_stale(staleness);
    batch.push_back({.producer = sequence.producer,
                     .number = sequence.number,
                     .arrival = sequence.arrival,
                     .weight = row.counts ? sequence.weight : 0.0,
                     .staleness = staleness,
                     .zeroed = zeroed,
                     .filler = !row.counts,
                     .start = row.start,
                     .frames = row.length,
                     .reset = row.start == 0,
                     .last = row.start + row.length == sequence.length});
  }
  std::ranges::sort(stalest);
  for (std::size_t i = 0; i < settings_.zero_most_stale && i + 1 < stalest.size(); ++i) {
    LiveRow& row = batch[std::get<2>(stalest[i])];
    row.zeroed = row.zeroed || row.staleness > 0;
  }
  for (LiveRow& row : batch) row.weight = row.zeroed ? 0.0 : row.weight;
  return batch;
}

}  // namespace batchwright
