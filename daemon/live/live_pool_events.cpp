#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "daemon/live/live_pool.h"
#include "formats/base/base.h"

// What each event does by itself, and what time limits do.

namespace batchwright {
namespace {

constexpr std::uint32_t kMostFrames = 0x7FFFFFFF;

/// Why a push can never join its group, of which `begun` is here. Empty if it can.
std::string group_misfit(const LiveSettings& settings, const LivePush& push,
                         const LiveUnit* begun) {
  const std::uint64_t size = push.group_size;
  if (size < 1) return "a group needs its size: live.groups is set";
  if (begun != nullptr && begun->size != size) {
    return fmt::format("the group's size is {}, and its first member's was {}", size, begun->size);
  }
  if (begun != nullptr && begun->sums.rows == size) {
    return fmt::format("all {} members of the group are here", size);
  }
  const std::uint64_t parts = settings.groups == LiveGroups::batch ? settings.world : 1;
  const bool frames = settings.step_unit == StepUnit::frames;
  const std::uint64_t here = begun != nullptr ? begun->sums.frames : 0;
  const std::uint64_t amount = frames ? push.length + here : size;
  if (settings.step_unit != StepUnit::groups && amount > settings.step / parts) {
    return fmt::format("its group has {} {}; a {} of this feed takes up to {}", amount,
                       frames ? "frames" : "sequences", parts == 1 ? "step" : "batch",
                       settings.step / parts);
  }
  if (settings.step_of_groups(size) > settings.pool_sequences) {
    return fmt::format("a step of groups of {} needs live.pool_sequences = {} x {}, which is {}",
                       size, settings.step_of_groups(1), size, settings.pool_sequences);
  }
  return {};
}

}  // namespace

/// Why a push can never be accepted; empty if it can.
std::string LivePool::misfit(const LivePush& push) const {
  if (push.version_newest < push.version) {
    return fmt::format("version_newest = {} is below version = {}", push.version_newest,
                       push.version);
  }
  if (!versions_.was_announced(push.version_newest)) {
    return fmt::format("version {} was never announced", push.version_newest);
  }
  if (push.length < 1 || push.length > kMostFrames) {
    return fmt::format("{} frames; allowed: 1 to {}", push.length, kMostFrames);
  }
  if (settings_.max_length != 0 && push.length > settings_.max_length) {
    return fmt::format("{} frames are more than live.max_length = {}", push.length,
                       settings_.max_length);
  }
  if (push.bytes > settings_.pool_bytes) {
    return fmt::format("{} bytes are more than live.pool_bytes = {}", push.bytes,
                       settings_.pool_bytes);
  }
  const auto group = group_of(push.group);
  if (!group || groups_.closed.find(*group)) return {};
  const auto begun = groups_.in_pool.find(*group);
  return group_misfit(settings_, push,
                      begun == groups_.in_pool.end() ? nullptr : &units_.unit(begun->second));
}

/// Why a claim can never be granted; empty if it can.
std::string LivePool::misfit(const LiveClaim& claim) const {
  const std::int64_t most =
      std::min(amounts().most_claimed(), static_cast<std::int64_t>(settings_.pool_sequences));
  if (claim.count >= 1 && static_cast<std::int64_t>(claim.count) <= most) return {};
  return fmt::format("{} sequences; 1 to {} can be claimed at once", claim.count,
                     std::max<std::int64_t>(most, 0));
}

void LivePool::handle(const LivePush& push) {
  if (push.producer >= accepted_.size()) accepted_.resize(std::size_t{push.producer} + 1);
  const std::uint64_t due = accepted_[push.producer] + blocked_.of(push.producer).size();
  if (push.number < due) return answer(LiveAnswer::Kind::duplicate, events_, 0, {});
  std::string why;
  if (ended_) {
    why = "the feed has ended";
  } else if (push.number > due) {
    why = fmt::format("number {}; {} comes next", push.number, due);
  } else {
    why = misfit(push);
  }
  if (!why.empty()) return answer(LiveAnswer::Kind::refused, events_, 0, std::move(why));
  blocked_.add(events_, push, now_ms_, push.timeout_ms);
}

void LivePool::handle(const LiveClaim& claim) {
  std::string why = ended_ ? "the feed has ended" : misfit(claim);
  if (!why.empty()) return answer(LiveAnswer::Kind::refused, events_, 0, std::move(why));
  asked_.add(events_, claim, now_ms_);
}

void LivePool::handle(const AbandonGroup& abandon) {
  const auto group = group_of(abandon.group);
  std::uint64_t count = abandon.count;
  const auto known = group ? groups_.in_pool.find(*group) : groups_.in_pool.end();
  if (known != groups_.in_pool.end()) {
    const UnitId id = known->second;
    const std::uint64_t missing = units_.unit(id).missing();
    if (count == 0) count = missing;
    if (missing != 0) {
      change_unit(id, [&](LiveUnit& unit) { unit.gone += std::min(count, missing); });
      note_group(*group);
      const LiveUnit& unit = units_.unit(id);
      if (unit.sums.rows == 0 && unit.missing() == 0) drop(id, SequenceState::abandoned, "");
    }
  } else if (group && !groups_.closed.find(*group)) {
    if (count != 0) {
      const auto forgotten =
          groups_.fewer.put(*group, groups_.fewer.find(*group).value_or(0) + count);
      if (forgotten) note_group(*forgotten);
      note_group(*group);
    } else {
      note_closed(*group, SequenceState::abandoned);
    }
  }
  claims_.use_up(abandon.producer, count);
}

void LivePool::handle(const AbandonNumber& abandon) {
  // For one that is cut, or settled otherwise, it is too late.
  const auto found = units_.find_waiting(abandon.producer, abandon.number);
  if (found.unit == kNoId) return;
  change_unit(found.unit, [&](LiveUnit& unit) {
    units_.remove_member(found.unit, found.sequence);
    ++unit.gone;
  });
  if (const auto group = units_.unit(found.unit).group) note_group(*group);
  leave(found.sequence, SequenceState::abandoned, "asked");
  const LiveUnit& unit = units_.unit(found.unit);
  if (unit.sums.rows == 0 && unit.missing() == 0) drop(found.unit, SequenceState::abandoned, "");
}

void LivePool::handle(const ProducerGone& gone) {
  claims_.end(gone.producer);
  while (!asked_.list().of(gone.producer).empty())
    asked_.take(asked_.list().of(gone.producer).front());
  while (!blocked_.of(gone.producer).empty()) blocked_.take(blocked_.of(gone.producer).front());
  std::vector<UnitId> alone;
  for (const auto& [arrival, id] : units_.begun_units()) {
    const LiveUnit& unit = units_.unit(id);
    if (unit.by == gone.producer && unit.others == 0) alone.push_back(id);
  }
  for (const UnitId id : alone) close_group(id);
}

void LivePool::handle(const LiveAdvance& advance) {
  trainers_.start();
  const std::uint64_t current = versions_.current();
  if (advance.restored) {
    trainers_.trained(trainers_.ahead());
  } else if (advance.version > current) {
    trainers_.trained(advance.version - current);  // a step makes a version
  }
  const bool new_line = versions_.advance(advance.version, advance.restored, advance.replays);
  units_.versions_changed(new_line);
  if (new_line) claims_.ages_changed();
  drop_stale();
}

/// What is too stale, and may be dropped for it.
void LivePool::drop_stale() {
  std::vector<std::pair<std::uint64_t, UnitId>> stale;
  bool begun = false;
  const bool drops_fresh = settings_.stale != StalePolicy::zero;
  for (const AgeClass* cohort : units_.stalest_first()) {
    if (!settings_.too_stale(cohort->staleness)) break;
    stale.insert(stale.end(), cohort->kept.begin(), cohort->kept.end());
    if (!drops_fresh) continue;
    stale.insert(stale.end(), cohort->ready.begin(), cohort->ready.end());
    begun = begun || cohort->begun_sums.units != 0;
  }
  if (begun) {
    for (const auto& each : units_.begun_units()) {
      const LiveUnit& unit = units_.unit(each.second);
      if (unit.sums.rows != 0 && settings_.too_stale(unit.cohort->staleness)) stale.push_back(each);
    }
  }
  std::ranges::sort(stale);
  for (const auto& [arrival, id] : stale) {
    const bool given = units_.unit(id).given != 0;
    drop(id, given ? SequenceState::done : SequenceState::dropped_stale, "stale");
  }
}

void LivePool::handle(const LiveTake& take) {
  const auto step = trainers_.take(take, events_);
  if (step) answer(LiveAnswer::Kind::step, events_, *step, {});
}

void LivePool::handle(const LiveRelease& released) { release(trainers_.release(released)); }

void LivePool::handle(const TrainerGone& gone) { release(trainers_.leave(gone.trainer)); }

/// A step of these sequences is released by all.
void LivePool::release(const std::vector<SequenceId>& sequences) {
  for (const SequenceId id : sequences) {
    LiveSequence& sequence = units_.sequence(id);
    must(sequence.open_steps > 0, "a step is released once");
    --sequence.open_steps;
    if (!sequence.left || sequence.open_steps != 0) continue;
    report(sequence, SequenceState::done, "");
    units_.free_sequence(id);
  }
}

void LivePool::handle(const LiveEnd&) {
  ended_ = true;
  for (const auto& [event, claim] : asked_.list().all())
    answer(LiveAnswer::Kind::ended, event, 0, {});
  for (const auto& [event, push] : blocked_.all()) answer(LiveAnswer::Kind::ended, event, 0, {});
  asked_ = {};
  blocked_ = {};
  claims_.end_all();
  const auto begun = units_.begun_units();
  for (const auto& [arrival, id] : begun) close_group(id);
}

/// What is here stays, and what waits is judged again.
void LivePool::handle(const LimitsChanged& changed) {
  const LiveLimits before = settings_;
  static_cast<LiveLimits&>(settings_) = changed.limits;
  // Groups that have begun, and a step of them, need their room.
  settings_.pool_sequences =
      std::max(settings_.pool_sequences, settings_.step_of_groups(groups_.largest));
  for (const auto& [arrival, id] : units_.begun_units()) {
    LiveUnit& unit = units_.unit(id);
    unit.until_ms = unit.until_ms - before.group_timeout_ms + settings_.group_timeout_ms;
  }
  units_.lanes().set_max_length(settings_.max_length);
  claims_.limits_changed(before);
  refuse_misfits();
  drop_stale();
  drop_beyond_limits();
  run_out();
}

/// What waits and can never get in any more. Behind such a push its producer's others have a gap.
void LivePool::refuse_misfits() {
  const auto refuse = [this](std::uint64_t event, std::string why) {
    answer(LiveAnswer::Kind::refused, event, 0, std::move(why));
  };
  std::map<ProducerId, std::uint64_t> refused;  // the first number of each
  const auto pushes = blocked_.all();
  for (const auto& [event, waiting] : pushes) {
    const LivePush& push = waiting.what;
    const auto gap = refused.find(push.producer);
    std::string why = gap == refused.end()
                          ? misfit(push)
                          : fmt::format("number {}; {} comes next", push.number, gap->second);
    if (why.empty()) continue;
    refused.emplace(push.producer, push.number);
    blocked_.take(event);
    refuse(event, std::move(why));
  }
  const auto claims = asked_.list().all();
  for (const auto& [event, waiting] : claims) {
    std::string why = misfit(waiting.what);
    if (why.empty()) continue;
    asked_.take(event);
    refuse(event, std::move(why));
  }
}

/// Of what was delivered: what has been so often enough, and what the pool has no place for.
void LivePool::drop_beyond_limits() {
  const auto kept = units_.kept_by_step();
  for (const auto& [at, id] : kept) {
    const bool enough = settings_.reuse != 0 && units_.unit(id).given >= settings_.reuse;
    if (enough) drop(id, SequenceState::done, "");
  }
  while (units_.kept().units != 0 &&
         units_.fresh().rows + units_.kept().rows > settings_.pool_sequences) {
    drop(units_.first_to_leave(), SequenceState::done, "");
  }
}

void LivePool::run_out() {
  std::vector<UnitId> over;
  for (const auto& [arrival, id] : units_.begun_units()) {
    if (units_.unit(id).until_ms > now_ms_) break;
    over.push_back(id);
  }
  for (const UnitId id : over) close_group(id);
  claims_.run_out(now_ms_);
  std::set<std::uint64_t> late;
  for (const std::uint64_t event : blocked_.over(now_ms_)) {
    // With it goes what waits behind it: its number comes first.
    const auto& all = blocked_.of(blocked_.all().at(event).what.producer);
    late.insert(all.begin(), all.end());
  }
  for (const std::uint64_t event : late) {
    blocked_.take(event);
    answer(LiveAnswer::Kind::timed_out, event, 0, "pool");
  }
  for (const std::uint64_t event : asked_.list().over(now_ms_)) {
    answer(LiveAnswer::Kind::timed_out, event, 0, std::string(first_claim().second));
    asked_.take(event);
  }
}

}  // namespace batchwright
