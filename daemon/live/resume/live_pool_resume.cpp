#include <algorithm>
#include <unordered_map>

#include "daemon/live/live_pool.h"
#include "formats/base/base.h"

// A pool that goes on where another one was.

namespace batchwright {

LiveSettings settings_for(LiveSettings settings, const LivePoolState& state) {
  std::uint64_t places = 0, bytes = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> missing;  // from groups that are not complete
  for (const LivePoolState::Sequence& each : state.sequences) {
    if (each.left) continue;
    bytes += each.push.bytes;
    if (each.given != 0) continue;  // it makes room
    if (!each.push.group || settings.groups == LiveGroups::none) {
      places += 1;
      continue;
    }
    const auto [group, is_new] = missing.try_emplace(*each.push.group, each.push.group_size);
    if (is_new) places += each.push.group_size;
  }
  settings.pool_sequences = std::max(settings.pool_sequences, places);
  settings.pool_bytes = std::max(settings.pool_bytes, bytes);
  return settings;
}

LivePool::LivePool(LiveSettings settings, const LivePoolState& state, LiveResults& results)
    : LivePool(settings_for(std::move(settings), state)) {
  results_ = &results;
  versions_ = Versions(state.versions);
  accepted_ = state.accepted;
  ended_ = state.ended;
  groups_.largest = std::max<std::uint64_t>(state.largest_group, 1);
  claims_.set_largest_group(groups_.largest);
  for (const LiveGroupChange& group : state.groups) {
    if (group.closed) groups_.closed.put(group.group, *group.closed);
  }
  Ids ids;
  resume_sequences(state, ids);
  units_.restore_accepted(state.arrivals);
  for (const LiveGroupChange& group : state.groups) {
    const bool begins = !group.closed && !groups_.in_pool.contains(group.group);
    if (begins && group.gone != 0) groups_.fewer.put(group.group, group.gone);
  }
  resume_steps(state, ids);
  drop_stale();
}

/// What is in steps is named by `ids`.
void LivePool::resume_sequences(const LivePoolState& state, Ids& ids) {
  for (const LivePoolState::Step& step : state.open) {
    for (const std::uint64_t arrival : step.arrivals) ids.emplace(arrival, kNoId);
  }
  std::unordered_map<std::uint64_t, std::uint64_t> gone;
  for (const LiveGroupChange& group : state.groups) gone[group.group] = group.gone;
  std::unordered_map<std::uint64_t, const LivePoolState::Lane*> in_lanes;
  for (const LivePoolState::Lane& lane : state.lanes) in_lanes[lane.arrival] = &lane;
  std::vector<UnitId> units;
  for (const LivePoolState::Sequence& each : state.sequences) {
    const SequenceId id = units_.restore_sequence({.producer = each.push.producer,
                                                   .length = each.push.length,
                                                   .number = each.push.number,
                                                   .arrival = each.arrival,
                                                   .bytes = each.push.bytes,
                                                   .origin = {each.push.version, each.line},
                                                   .weight = each.push.weight,
                                                   .left = each.left});
    if (const auto found = ids.find(each.arrival); found != ids.end()) found->second = id;
    if (each.left) continue;
    const UnitId unit = unit_of(each, each.push.group ? gone[*each.push.group] : 0);
    units_.add_member(unit, id);
    if (const auto lane = in_lanes.find(each.arrival); lane != in_lanes.end()) {
      units_.unit(unit).given = 1;
      units_.lanes().put(lane->second->lane, {id, each.push.length, lane->second->next});
    } else {
      units.push_back(unit);
    }
  }
  resume_places(std::move(units));
}

/// Each unit is there as often as it has members.
void LivePool::resume_places(std::vector<UnitId> units) {
  std::ranges::sort(units);
  units.erase(std::unique(units.begin(), units.end()), units.end());
  for (const UnitId unit : units) {
    units_.place(unit);
    claims_.lack(units_.unit(unit).by, static_cast<std::int64_t>(units_.unit(unit).sums.missing));
    const bool is_over = settings_.reuse != 0 && units_.unit(unit).given >= settings_.reuse;
    if (is_over) drop(unit, SequenceState::done, "");
  }
}

void LivePool::resume_steps(const LivePoolState& state, const Ids& ids) {
  trainers_.resume(state.steps, state.first_ahead);
  for (const LivePoolState::Step& step : state.open) {
    std::vector<SequenceId> sequences;
    for (const std::uint64_t arrival : step.arrivals) {
      sequences.push_back(ids.at(arrival));
      must(sequences.back() != kNoId, "a step that is kept has its sequences");
      ++units_.sequence(sequences.back()).open_steps;
    }
    trainers_.keep(step.step, std::move(sequences), state.holder);
  }
}

std::vector<LivePoolState::Lane> LivePool::busy_lanes() const {
  std::vector<LivePoolState::Lane> busy;
  const std::vector<Lane>& all = units_.lanes().all();
  for (std::uint32_t lane = 0; lane < all.size(); ++lane) {
    if (all[lane].is_free()) continue;
    busy.push_back({lane, all[lane].next, units_.sequence(all[lane].sequence).arrival});
  }
  return busy;
}

/// The unit that the sequence is a member of. It has no place yet.
UnitId LivePool::unit_of(const LivePoolState::Sequence& sequence, std::uint64_t gone) {
  const auto group = group_of(sequence.push.group);
  if (group) {
    const auto known = groups_.in_pool.find(*group);
    if (known != groups_.in_pool.end()) return known->second;
  }
  LiveUnit unit;
  unit.group = group;
  unit.size = group ? sequence.push.group_size : 1;
  unit.gone = group ? gone : 0;
  unit.arrival = sequence.arrival;
  unit.until_ms = settings_.group_timeout_ms;
  unit.by = sequence.push.producer;
  unit.given = sequence.given;
  unit.last_step = sequence.last_step;
  const UnitId id = units_.add_unit(unit);
  if (group) groups_.in_pool[*group] = id;
  return id;
}

}  // namespace batchwright
