#include "daemon/live/unit_table.h"

#include <algorithm>

#include "formats/base/base.h"

namespace batchwright {
UnitSums& UnitSums::operator+=(const UnitSums& other) {
  units += other.units;
  rows += other.rows;
  frames += other.frames;
  bytes += other.bytes;
  missing += other.missing;
  return *this;
}

UnitSums& UnitSums::operator-=(const UnitSums& other) {
  must(units >= other.units && rows >= other.rows && frames >= other.frames &&
           bytes >= other.bytes && missing >= other.missing,
       "the pool's sums are those of its units");
  units -= other.units;
  rows -= other.rows;
  frames -= other.frames;
  bytes -= other.bytes;
  missing -= other.missing;
  return *this;
}

UnitTable::UnitTable(const Versions& versions, const LiveSettings& settings)
    : versions_(versions),
      keeps_arrivals_(settings.select == LiveSelect::uniform),
      lanes_(settings) {}

SequenceId UnitTable::add_sequence(LiveSequence sequence) {
  sequence.arrival = accepted_++;
  return sequences_.put(sequence);
}

SequenceId UnitTable::restore_sequence(const LiveSequence& sequence) {
  return sequences_.put(sequence);
}

void UnitTable::free_sequence(SequenceId id) { sequences_.free(id); }

UnitId UnitTable::add_unit(const LiveUnit& unit) {
  const UnitId id = units_.put(unit);
  if (keeps_arrivals_) {
    if (arrivals_.size() > 2 * std::size_t{units_.used()} + 1024) forget_those_that_left();
    arrivals_.emplace_back(unit.arrival, id);
  }
  return id;
}

void UnitTable::free_unit(UnitId id) {
  must(units_[id].place == LiveUnit::Place::nowhere, "a unit that is freed is in no index");
  units_[id] = {};
  units_[id].arrival = ~std::uint64_t{0};
  units_.free(id);
}

void UnitTable::add_member(UnitId id, SequenceId member) {
  LiveUnit& unit = units_[id];
  LiveSequence& sequence = sequences_[member];
  const Age age = versions_.age_of(sequence.origin);
  unit.age = unit.sums.rows == 0 ? age : stalest(unit.age, age);
  (unit.last == kNoId ? unit.first : sequences_[unit.last].next) = member;
  unit.last = member;
  ++unit.sums.rows;
  unit.sums.frames += sequence.length;
  unit.sums.bytes += sequence.bytes;
  unit.others += sequence.producer == unit.by ? 0 : 1;
  sequence.unit = id;
  note_pushed(member);
}

void UnitTable::remove_member(UnitId id, SequenceId member) {
  LiveUnit& unit = units_[id];
  const LiveSequence& sequence = sequences_[member];
  SequenceId before = kNoId;
  for (SequenceId at = unit.first; at != member; at = sequences_[at].next) before = at;
  (before == kNoId ? unit.first : sequences_[before].next) = sequence.next;
  if (unit.last == member) unit.last = before;
  --unit.sums.rows;
  unit.sums.frames -= sequence.length;
  unit.sums.bytes -= sequence.bytes;
  unit.others -= sequence.producer == unit.by ? 0 : 1;
  unit.age = age_of(unit);
}

std::vector<SequenceId> UnitTable::members(UnitId id) const {
  std::vector<SequenceId> all;
  for (SequenceId at = units_[id].first; at != kNoId; at = sequences_[at].next) all.push_back(at);
  return all;
}

bool UnitTable::is_waiting(SequenceId id) const {
  const LiveSequence& sequence = sequences_[id];
  return !sequence.left && units_[sequence.unit].given == 0;
}

void UnitTable::note_pushed(SequenceId id) {
  const LiveSequence& sequence = sequences_[id];
  if (sequence.producer >= pushed_.size()) pushed_.resize(std::size_t{sequence.producer} + 1);
  Pushed& pushed = pushed_[sequence.producer];
  if (pushed.numbers.size() >= pushed.most) {
    std::erase_if(pushed.numbers, [&](const auto& each) {
      const LiveSequence& known = sequences_[each.second];
      const bool same = known.producer == sequence.producer && known.number == each.first;
      return !same || !is_waiting(each.second);
    });
    pushed.most = 2 * pushed.numbers.size() + 64;
  }
  pushed.numbers.emplace_back(sequence.number, id);
}

UnitTable::Found UnitTable::find_waiting(ProducerId producer, std::uint64_t number) const {
  if (producer >= pushed_.size()) return {};
  const auto& numbers = pushed_[producer].numbers;
  const auto found =
      std::ranges::lower_bound(numbers, number, {}, &std::pair<std::uint64_t, SequenceId>::first);
  if (found == numbers.end() || found->first != number) return {};
  const LiveSequence& sequence = sequences_[found->second];
  const bool same = sequence.producer == producer && sequence.number == number;
  if (!same || !is_waiting(found->second)) return {};
  return {sequence.unit, found->second};
}

Age UnitTable::age_of(const LiveUnit& unit) const {
  Age age;
  for (SequenceId at = unit.first; at != kNoId; at = sequences_[at].next) {
    const Age member = versions_.age_of(sequences_[at].origin);
    age = at == unit.first ? member : stalest(age, member);
  }
  return age;
}

AgeClass& UnitTable::cohort(const Age& age) {
  const auto [at, made] = cohorts_.try_emplace(age);
  if (made) {
    at->second.age = age;
    at->second.staleness = versions_.staleness(age);
    stalest_first_.clear();
  }
  return at->second;
}

void UnitTable::count(const LiveUnit& unit, bool in) {
  const auto add = [&unit, in](UnitSums& sums) { in ? sums += unit.sums : sums -= unit.sums; };
  switch (unit.place) {
    case LiveUnit::Place::nowhere: break;
    case LiveUnit::Place::begun:
      add(begun_);
      if (unit.sums.rows != 0) add(unit.cohort->begun_sums);
      break;
    case LiveUnit::Place::ready:
      add(ready_);
      add(unit.cohort->ready_sums);
      break;
    case LiveUnit::Place::kept: add(kept_); break;
  }
}

void UnitTable::lift(UnitId id) {
  LiveUnit& unit = units_[id];
  count(unit, false);
  switch (unit.place) {
    case LiveUnit::Place::nowhere: return;
    case LiveUnit::Place::begun: begun_units_.erase(unit.arrival); break;
    case LiveUnit::Place::ready: unit.cohort->ready.erase(unit.arrival); break;
    case LiveUnit::Place::kept:
      unit.cohort->kept.erase(unit.arrival);
      kept_by_step_.erase({unit.last_step, unit.arrival});
      break;
  }
  unit.place = LiveUnit::Place::nowhere;
  unit.sums.missing = 0;
}

void UnitTable::place(UnitId id) {
  LiveUnit& unit = units_[id];
  must(unit.place == LiveUnit::Place::nowhere, "a unit has one place");
  if (unit.sums.rows != 0) unit.cohort = &cohort(unit.age);
  unit.sums.missing = unit.missing();
  if (unit.given != 0) {
    unit.place = LiveUnit::Place::kept;
    unit.cohort->kept.emplace_hint(unit.cohort->kept.end(), unit.arrival, id);
    kept_by_step_.emplace_hint(kept_by_step_.end(), std::pair(unit.last_step, unit.arrival), id);
  } else if (unit.complete()) {
    unit.place = LiveUnit::Place::ready;
    unit.cohort->ready.emplace_hint(unit.cohort->ready.end(), unit.arrival, id);
  } else {
    unit.place = LiveUnit::Place::begun;
    begun_units_.emplace_hint(begun_units_.end(), unit.arrival, id);
  }
  count(unit, true);
}

const std::vector<const AgeClass*>& UnitTable::stalest_first() const {
  if (stalest_first_.empty()) {
    for (const auto& [age, cohort] : cohorts_) stalest_first_.push_back(&cohort);
    std::ranges::sort(stalest_first_, [](const AgeClass* a, const AgeClass* b) {
      return a->staleness != b->staleness ? a->staleness > b->staleness : a->age < b->age;
    });
  }
  return stalest_first_;
}

UnitId UnitTable::first_to_leave() const {
  if (kept_.units == 0) return kNoId;
  return StalestFirst(*this, &AgeClass::kept).next().unit;
}

void UnitTable::forget_those_that_left() {
  std::erase_if(arrivals_,
                [this](const auto& at) { return units_[at.second].arrival != at.first; });
}

std::vector<UnitId> UnitTable::by_arrival() {
  forget_those_that_left();
  std::vector<UnitId> all;
  all.reserve(arrivals_.size());
  for (const auto& [arrival, id] : arrivals_) {
    const LiveUnit& unit = units_[id];
    if (!unit.chosen && unit.place != LiveUnit::Place::begun) all.push_back(id);
  }
  return all;
}

void UnitTable::versions_changed(bool new_line) {
  stalest_first_.clear();
  if (new_line) {
    std::vector<UnitId> all;
    for (UnitId id = 0; id < units_.size(); ++id) {
      if (units_[id].place != LiveUnit::Place::nowhere) all.push_back(id);
    }
    for (const UnitId id : all) {
      lift(id);
      units_[id].age = age_of(units_[id]);
      place(id);
    }
  }
  std::erase_if(cohorts_, [](const auto& each) {
    const AgeClass& cohort = each.second;
    return cohort.ready.empty() && cohort.kept.empty() && cohort.begun_sums.units == 0;
  });
  for (auto& [age, cohort] : cohorts_) cohort.staleness = versions_.staleness(age);
}

StalestFirst::StalestFirst(const UnitTable& table, std::map<std::uint64_t, UnitId> AgeClass::*units)
    : cohorts_(table.stalest_first()), units_(units) {}

void StalestFirst::begin_level() {
  while (level_.empty() && at_ < cohorts_.size()) {
    staleness_ = cohorts_[at_]->staleness;
    for (; at_ < cohorts_.size() && cohorts_[at_]->staleness == staleness_; ++at_) {
      const auto& units = cohorts_[at_]->*units_;
      if (!units.empty()) level_.emplace_back(units.begin(), units.end());
    }
  }
}

StalestFirst::Next StalestFirst::next() {
  begin_level();
  if (level_.empty()) return {};
  const auto first =
      std::ranges::min_element(level_, {}, [](const auto& places) { return places.first->first; });
  const Next next{first->first->second, staleness_};
  if (++first->first == first->second) level_.erase(first);
  return next;
}

}  // namespace batchwright
