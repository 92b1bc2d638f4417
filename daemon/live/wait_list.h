#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "daemon/live/events.h"

namespace batchwright {

/// What waits, in order, and found by producer and by time limit as well.
template <class T>
class WaitList {
 public:
  struct Waiting {
    T what;
    std::uint64_t since_ms = 0;
    std::optional<std::uint64_t> until_ms;
  };
  /// By the event that began it.
  using Map = std::map<std::uint64_t, Waiting>;

  bool empty() const { return map_.empty(); }
  std::size_t size() const { return map_.size(); }
  const Map& all() const { return map_; }
  /// The events of what this producer has waiting, in order.
  const std::deque<std::uint64_t>& of(ProducerId producer) const {
    static const std::deque<std::uint64_t> none;
    return producer < own_.size() ? own_[producer] : none;
  }

  void add(std::uint64_t event, const T& what, std::uint64_t now_ms,
           std::optional<std::uint64_t> timeout_ms) {
    if (what.producer >= own_.size()) own_.resize(std::size_t{what.producer} + 1);
    own_[what.producer].push_back(event);
    const auto until =
        timeout_ms ? std::optional(now_ms + std::min(*timeout_ms, kLongest)) : std::nullopt;
    if (until) deadlines_.emplace(*until, event);
    map_.emplace_hint(map_.end(), event, Waiting{what, now_ms, until});
  }

  /// Takes one off the list.
  Waiting take(std::uint64_t event) {
    const auto found = map_.find(event);
    Waiting waiting = std::move(found->second);
    map_.erase(found);
    if (waiting.until_ms) deadlines_.erase({*waiting.until_ms, event});
    auto& own = own_[waiting.what.producer];
    if (own.front() == event) {
      own.pop_front();
    } else {
      std::erase(own, event);
    }
    return waiting;
  }

  std::optional<std::uint64_t> next_deadline() const {
    if (deadlines_.empty()) return std::nullopt;
    return deadlines_.begin()->first;
  }

  /// The events of what has waited too long, in order.
  std::vector<std::uint64_t> over(std::uint64_t now_ms) const {
    std::vector<std::uint64_t> events;
    for (const auto& [until, event] : deadlines_) {
      if (until > now_ms) break;
      events.push_back(event);
    }
    std::ranges::sort(events);
    return events;
  }

 private:
  /// Milliseconds; no clock comes so far.
  static constexpr std::uint64_t kLongest = std::uint64_t{1} << 60;

  Map map_;
  std::vector<std::deque<std::uint64_t>> own_;  ///< By producer.
  std::set<std::pair<std::uint64_t, std::uint64_t>> deadlines_;
};

/// Claims that wait, and are found by their counts as well.
class WaitingClaims {
 public:
  const WaitList<LiveClaim>& list() const { return list_; }

  void add(std::uint64_t event, const LiveClaim& claim, std::uint64_t now_ms) {
    list_.add(event, claim, now_ms, claim.timeout_ms);
    by_count_[claim.count].insert(event);
  }

  LiveClaim take(std::uint64_t event) {
    const LiveClaim claim = list_.take(event).what;
    const auto equal = by_count_.find(claim.count);
    equal->second.erase(event);
    if (equal->second.empty()) by_count_.erase(equal);
    return claim;
  }

  /// The event of the first claim of so many or fewer. Costs O(counts that differ).
  std::optional<std::uint64_t> first_up_to(std::uint64_t count) const {
    std::optional<std::uint64_t> first;
    for (const auto& [each, events] : by_count_) {
      if (each > count) break;
      if (!first || *events.begin() < *first) first = *events.begin();
    }
    return first;
  }

 private:
  WaitList<LiveClaim> list_;
  std::map<std::uint64_t, std::set<std::uint64_t>> by_count_;
};

}  // namespace batchwright
