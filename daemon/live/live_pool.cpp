#include "daemon/live/live_pool.h"

#include <algorithm>

#include "formats/base/base.h"

// What follows from an event, apart from steps: pushes that get in, claims that are granted, and
// sequences that leave.

namespace batchwright {

LivePool::LivePool(LiveSettings settings)
    : settings_(std::move(settings)), units_(versions_, settings_), claims_(settings_, versions_) {}

std::uint64_t LivePool::on(const LiveEvent& event, std::uint64_t now_ms, LiveResults& results) {
  must(now_ms >= now_ms_, "a live feed's time does not fall");
  results_ = &results;
  for (auto at = next_deadline(); at && *at <= now_ms; at = next_deadline()) {
    now_ms_ = std::max(now_ms_, *at);
    run_out();
    looked_ = {};
    settle();
  }
  now_ms_ = now_ms;
  const std::uint64_t before = places_kept();
  std::visit([this](const auto& each) { handle(each); }, event);
  // A push changes nothing until it gets in, nor does a claim until it is granted.
  const bool waits =
      std::holds_alternative<LivePush>(event) || std::holds_alternative<LiveClaim>(event);
  if (!waits) looked_ = {};
  ++events_;
  settle();
  const UnitSums fresh = units_.fresh();
  // Smaller limits are kept once what was there before has left.
  must(places_kept() <= std::max(before, settings_.pool_sequences),
       "the pool has a place for each");
  must(fresh.bytes + units_.kept().bytes <= settings_.pool_bytes,
       "the pool has room for all bytes");
  return events_ - 1;
}

std::optional<std::uint64_t> LivePool::next_deadline() const {
  auto next = claims_.next_deadline();
  const auto earlier = [&next](const std::optional<std::uint64_t>& other) {
    if (other && (!next || *other < *next)) next = other;
  };
  earlier(asked_.list().next_deadline());
  earlier(blocked_.next_deadline());
  const auto& begun = units_.begun_units();
  if (!begun.empty()) earlier(units_.unit(begun.begin()->second).until_ms);
  if (lingers_since_ms_ && settings_.linger_ms) {
    const std::uint64_t over = *lingers_since_ms_ + *settings_.linger_ms;
    if (over > now_ms_) earlier(over);
  }
  return next;
}

LivePoolStatus LivePool::status() const {
  const UnitSums fresh = units_.fresh();
  const auto& begun = units_.begun_units();
  const auto since = [](const auto& waiting) -> std::optional<std::uint64_t> {
    if (waiting.empty()) return {};
    return waiting.begin()->second.since_ms;
  };
  std::optional<std::uint64_t> first_group;
  if (!begun.empty()) {
    first_group = units_.unit(begun.begin()->second).until_ms - settings_.group_timeout_ms;
  }
  return {
      .waiting = fresh.rows,
      .kept = units_.kept().rows,
      .bytes = fresh.bytes + units_.kept().bytes,
      .kept_bytes = units_.kept().bytes,
      .in_flight = in_flight(),
      .begun_groups = units_.begun().units,
      .missing = units_.begun().missing,
      .blocked_pushes = blocked_.size(),
      .waiting_claims = asked_.list().size(),
      .ahead = trainers_.ahead(),
      .steps = trainers_.steps(),
      .next_step = units_.lanes().busy() + step_total(settings_, units_.ready() + units_.kept()),
      .busy_lanes = units_.lanes().busy(),
      .version = versions_.current(),
      .claims_wait_for = first_claim().second,
      .group_since_ms = first_group,
      .push_since_ms = since(blocked_.all()),
      .claim_since_ms = since(asked_.list().all())};
}

void LivePool::settle() {
  while (admit() || cut() || grant()) looked_ = {};
}

/// Accepts the first push that waits and has room.
bool LivePool::admit() {
  const auto& all = blocked_.all();
  for (auto at = all.lower_bound(looked_.next); at != all.end(); ++at) {
    const auto& [event, waiting] = *at;
    const LivePush& push = waiting.what;
    looked_.next = event + 1;
    if (blocked_.of(push.producer).front() != event) continue;
    const auto group = group_of(push.group);
    const bool late = group && groups_.closed.find(*group);
    const std::uint64_t grows = growth(push);
    // What was claimed, or what a begun group lacks, has its room and passes the others.
    const bool in_turn = grows == 0 || looked_.none_takes_places;
    if (late || (in_turn && make_room(grows, push.bytes))) {
      accept(event);
      return true;
    }
    looked_.none_takes_places = looked_.none_takes_places && grows == 0;
  }
  return false;
}

bool LivePool::grant() {
  const auto [first, why] = first_claim();
  if (!first) return false;
  // Below `world` a claim that staleness holds back is granted, so that nothing waits forever.
  if (!why.empty() && (enough() || why != "staleness" || !starved())) return false;
  const LiveClaim claim = asked_.take(*first);
  claims_.grant(claim.producer, claim.count, now_ms_);
  answer(LiveAnswer::Kind::granted, *first, versions_.current(), {});
  return true;
}

/// Places that a push takes or keeps beyond those that are kept for it already.
std::uint64_t LivePool::growth(const LivePush& push) const {
  std::int64_t missing = 0;
  if (const auto group = group_of(push.group)) {
    if (const auto begun = groups_.in_pool.find(*group); begun != groups_.in_pool.end()) {
      missing = units_.unit(begun->second).missing() > 0 ? -1 : 0;
    } else {  // the whole group has to find room
      const std::uint64_t absent = 1 + groups_.fewer.find(*group).value_or(0);
      if (push.group_size > absent) missing = static_cast<std::int64_t>(push.group_size - absent);
    }
  }
  return 1 + in_flight(claims_.holds(push.producer) ? -1 : 0, missing) - in_flight();
}

/// Whether there is room. What was delivered before gives way, the oldest version first.
bool LivePool::make_room(std::uint64_t grows, std::uint64_t bytes) {
  const UnitSums fresh = units_.fresh();
  if (grows != 0 && places_kept() + grows > settings_.pool_sequences) return false;
  if (fresh.bytes + bytes > settings_.pool_bytes) return false;
  while (units_.kept().units != 0) {
    const UnitSums& kept = units_.kept();
    if (fresh.rows + kept.rows < settings_.pool_sequences &&
        fresh.bytes + kept.bytes + bytes <= settings_.pool_bytes) {
      break;
    }
    drop(units_.first_to_leave(), SequenceState::done, "");
  }
  return true;
}

void LivePool::accept(std::uint64_t event) {
  const auto waiting = blocked_.take(event);
  const LivePush& push = waiting.what;
  const auto claimed_line = claims_.use(push.producer, push.version);
  // A version that its line has not reached is of the last line that had.
  const std::size_t line = claimed_line ? *claimed_line : versions_.last_line_with(push.version);
  const SequenceId id = units_.add_sequence({.producer = push.producer,
                                             .length = push.length,
                                             .number = push.number,
                                             .bytes = push.bytes,
                                             .origin = {push.version, line},
                                             .weight = push.weight});
  ++accepted_[push.producer];
  report(units_.sequence(id), SequenceState::waiting, "");
  if (waiting.since_ms != now_ms_) answer(LiveAnswer::Kind::accepted, event, 0, {});
  const auto group = group_of(push.group);
  if (const auto late = group ? groups_.closed.find(*group) : std::nullopt) {
    leave(id, *late, "late");
    return;
  }
  join(id, push);
}

/// The sequence joins its group, or begins a unit.
void LivePool::join(SequenceId member, const LivePush& push) {
  const auto group = group_of(push.group);
  const auto begun = group ? groups_.in_pool.find(*group) : groups_.in_pool.end();
  UnitId id = kNoId;
  if (begun != groups_.in_pool.end()) {
    id = begun->second;
  } else {
    LiveUnit unit;
    unit.group = group;
    unit.size = group ? push.group_size : 1;
    unit.gone = group ? groups_.fewer.take(*group).value_or(0) : 0;
    unit.arrival = units_.sequence(member).arrival;
    unit.until_ms = now_ms_ + settings_.group_timeout_ms;
    unit.by = push.producer;
    id = units_.add_unit(unit);
    if (group) groups_.in_pool[*group] = id;
    groups_.largest = std::max(groups_.largest, unit.size);
    claims_.set_largest_group(groups_.largest);
  }
  change_unit(id, [&](LiveUnit&) { units_.add_member(id, member); });
  const std::uint64_t staleness = versions_.staleness(units_.unit(id).age);
  if (settings_.stale != StalePolicy::zero && settings_.too_stale(staleness)) {
    drop(id, SequenceState::dropped_stale, "stale");
  }
}

/// A unit leaves the pool.
void LivePool::drop(UnitId id, SequenceState state, std::string_view why) {
  const LiveUnit& unit = units_.unit(id);
  const auto missing = static_cast<std::int64_t>(unit.sums.missing);
  const ProducerId by = unit.by;
  if (unit.group) {
    groups_.in_pool.erase(*unit.group);
    const bool done = state == SequenceState::done;
    note_closed(*unit.group, done ? SequenceState::abandoned : state);
  }
  units_.lift(id);
  claims_.lack(by, -missing);
  const auto members = units_.members(id);
  units_.free_unit(id);
  for (const SequenceId member : members) leave(member, state, why);
}

/// A sequence leaves the pool. If steps with it are not released, it is done only after that.
void LivePool::leave(SequenceId id, SequenceState state, std::string_view why) {
  LiveSequence& sequence = units_.sequence(id);
  sequence.left = true;
  sequence.unit = kNoId;
  const bool open = sequence.open_steps != 0;
  report(sequence, open ? SequenceState::delivered : state, why);
  if (!open) units_.free_sequence(id);
}

/// An incomplete group has waited long enough.
void LivePool::close_group(UnitId id) {
  const LiveUnit& unit = units_.unit(id);
  if (settings_.late_groups == LateGroups::abandon || unit.sums.rows == 0) {
    drop(id, SequenceState::abandoned, "incomplete");
    return;
  }
  change_unit(id, [](LiveUnit& closed) { closed.gone = closed.size - closed.sums.rows; });
  note_closed(unit.group.value(), SequenceState::abandoned);
}

/// Members of the group that come from now on have this state at once.
void LivePool::note_closed(std::uint64_t group, SequenceState state) {
  const auto forgotten = groups_.closed.put(group, state);
  if (forgotten) note_group(*forgotten);
  note_group(group);
}

/// Tells what is known of the group now.
void LivePool::note_group(std::uint64_t group) {
  const auto here = groups_.in_pool.find(group);
  const std::uint64_t gone = here != groups_.in_pool.end() ? units_.unit(here->second).gone
                                                           : groups_.fewer.find(group).value_or(0);
  results_->groups.push_back({group, gone, groups_.closed.find(group)});
}

/// Sequences that are to come: so many were claimed, or are missing from begun groups, whichever
/// are more.
std::uint64_t LivePool::in_flight(std::int64_t claimed, std::int64_t missing) const {
  const auto claims = static_cast<std::int64_t>(claims_.left()) + claimed;
  const auto members = static_cast<std::int64_t>(units_.begun().missing) + missing;
  return static_cast<std::uint64_t>(std::max(claims, members));
}

/// What a claim of so many waits for; empty if it can be granted.
std::string_view LivePool::held_by(std::uint64_t count) const {
  if (!trainers_.started()) return "trainer";
  const std::uint64_t more = in_flight(static_cast<std::int64_t>(count)) - in_flight();
  if (more == 0) return "";  // it is for members that begun groups lack
  const UnitSums fresh = units_.fresh();
  if (places_kept() + more > settings_.pool_sequences) return "pool";
  if (!settings_.bounded()) return "";
  const Amounts amounts = this->amounts();
  const std::uint64_t amount = amounts.of(fresh) + claims_.coming() + more * settings_.longest();
  const std::int64_t steps = static_cast<std::int64_t>(*settings_.max_staleness) + 1 -
                             static_cast<std::int64_t>(trainers_.ahead());
  return static_cast<std::int64_t>(amount) > amounts.room_in(steps) ? "staleness" : "";
}

/// The first claim that can be granted, in order; else the first, and what it waits for.
std::pair<std::optional<std::uint64_t>, std::string_view> LivePool::first_claim() const {
  const auto& all = asked_.list().all();
  if (all.empty()) return {};
  const auto& [first, waiting] = *all.begin();
  const std::string_view why = held_by(waiting.what.count);
  const std::uint64_t missing = units_.begun().missing;
  if (!why.empty() && trainers_.started() && missing > claims_.left()) {
    // One for members that begun groups lack may overtake.
    const auto overtakes = asked_.first_up_to(missing - claims_.left());
    if (overtakes) return {overtakes, ""};
  }
  return {first, why};
}

bool LivePool::enough() const {
  const Lanes& lanes = units_.lanes();
  if (lanes.exist()) return units_.ready().rows >= lanes.idle_ranks();
  return batch_places(settings_, units_.ready() + units_.kept()) >= settings_.world;
}

/// A loop waits, nothing is on its way, and what would come is held back.
bool LivePool::starved() const {
  return trainers_.loop_waits() && in_flight() == 0 && !first_claim().second.empty();
}

std::optional<std::uint64_t> LivePool::group_of(const std::optional<std::uint64_t>& group) const {
  return settings_.groups == LiveGroups::none ? std::nullopt : group;
}

void LivePool::answer(LiveAnswer::Kind kind, std::uint64_t event, std::uint64_t value,
                      std::string why) {
  results_->answers.push_back({kind, event, now_ms_, value, std::move(why)});
}

void LivePool::report(const LiveSequence& sequence, SequenceState state, std::string_view why) {
  LiveChange change{
      sequence.producer, sequence.number,     sequence.arrival, state, sequence.left, why,
      now_ms_,           sequence.origin.line};
  if (sequence.unit != kNoId) {
    change.given = units_.unit(sequence.unit).given;
    change.last_step = units_.unit(sequence.unit).last_step;
  }
  results_->changes.push_back(change);
}

}  // namespace batchwright
