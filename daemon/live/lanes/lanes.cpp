#include "daemon/live/lanes/lanes.h"

#include <algorithm>

#include "formats/base/base.h"

namespace batchwright {

Lanes::Lanes(const LiveSettings& settings)
    : unroll_(std::max<std::uint64_t>(settings.unroll, 1)),
      of_rank_(settings.step / settings.world) {
  set_max_length(settings.max_length);
  if (settings.step_unit != StepUnit::lanes) return;
  lanes_.resize(settings.step);
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) free_.insert(free_.end(), lane);
  rows_.resize(settings.world);
  for (std::uint32_t rank = 0; rank < rows_.size(); ++rank) ranks_.insert({0, rank});
  idle_ranks_ = rows_.size();
}

void Lanes::set_max_length(std::uint64_t frames) {
  longest_ = std::max<std::uint64_t>(parts(frames), 1);
}

std::uint32_t Lanes::frames(const Lane& lane) const {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(unroll_, lane.length - lane.next));
}

/// A lane has become busy, or free.
void Lanes::count(std::uint32_t lane, bool busy) {
  const auto rank = static_cast<std::uint32_t>(lane / of_rank_);
  ranks_.erase({rows_[rank], rank});
  if (busy) {
    free_.erase(lane);
    if (rows_[rank]++ == 0) --idle_ranks_;
  } else {
    free_.insert(lane);
    if (--rows_[rank] == 0) ++idle_ranks_;
  }
  ranks_.insert({rows_[rank], rank});
}

void Lanes::take(SequenceId sequence, std::uint32_t length) {
  must(!free_.empty(), "a lane that takes a sequence is free");
  const auto first = static_cast<std::uint32_t>(ranks_.begin()->second * of_rank_);
  put(*free_.lower_bound(first), {sequence, length, 0});
}

void Lanes::put(std::uint32_t lane, const Lane& at) {
  must(lanes_[lane].is_free() && !at.is_free() && at.next < at.length, "a lane has one sequence");
  count(lane, true);
  lanes_[lane] = at;
  ++ends_[moves_ + parts(at.length - at.next)];
}

std::vector<SequenceId> Lanes::move_on() {
  std::vector<SequenceId> through;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    Lane& at = lanes_[lane];
    if (at.is_free()) continue;
    at.next += frames(at);
    if (at.next < at.length) continue;
    through.push_back(at.sequence);
    at = {};
    count(lane, false);
  }
  ends_.erase(++moves_);
  return through;
}

std::vector<SequenceId> Lanes::clear() {
  std::vector<SequenceId> all;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].is_free()) continue;
    all.push_back(lanes_[lane].sequence);
    lanes_[lane] = {};
    count(lane, false);
  }
  ends_.clear();
  return all;
}

/// What so many lanes take that are free now, in so many steps.
std::int64_t Lanes::takes_of(std::uint64_t lanes, std::int64_t steps) const {
  if (steps <= 0) return 0;
  return static_cast<std::int64_t>(lanes) * ((steps - 1) / static_cast<std::int64_t>(longest_) + 1);
}

std::int64_t Lanes::room_in(std::int64_t steps) const {
  std::int64_t room = takes_of(free(), steps);
  for (const auto& [move, lanes] : ends_) {
    const std::int64_t left = steps - static_cast<std::int64_t>(move - moves_);
    if (left <= 0) break;
    room += takes_of(lanes, left);
  }
  return room;
}

std::int64_t Lanes::room_after(std::uint64_t takes, std::int64_t steps) const {
  const auto longest = static_cast<std::int64_t>(longest_);
  std::int64_t room = takes_of(free() - takes, steps) + takes_of(takes, steps + 1 - longest);
  for (const auto& [move, lanes] : ends_) {
    const std::int64_t left = steps + 1 - static_cast<std::int64_t>(move - moves_);
    if (left <= 0) break;
    room += takes_of(lanes, left);
  }
  return room;
}

std::int64_t Lanes::room_of_rank(std::int64_t steps) const { return takes_of(of_rank_, steps); }

}  // namespace batchwright
