#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

#include "daemon/live/events.h"
#include "daemon/live/unit_table.h"

namespace batchwright {

/// Values of groups, of which the oldest are forgotten where they become too many.
template <class T>
class RecentGroups {
 public:
  std::optional<T> find(std::uint64_t group) const {
    const auto found = values_.find(group);
    return found == values_.end() ? std::nullopt : std::optional(found->second.first);
  }

  /// A group that is known keeps its age. Returns the group that is forgotten for it.
  std::optional<std::uint64_t> put(std::uint64_t group, T value) {
    const auto [at, made] = values_.try_emplace(group, value, order_.end());
    at->second.first = value;
    if (!made) return std::nullopt;
    at->second.second = order_.insert(order_.end(), group);
    if (values_.size() <= kMost) return std::nullopt;
    const std::uint64_t oldest = order_.front();
    take(oldest);
    return oldest;
  }

  /// Returns the value and forgets it.
  std::optional<T> take(std::uint64_t group) {
    const auto found = values_.find(group);
    if (found == values_.end()) return std::nullopt;
    const T value = found->second.first;
    order_.erase(found->second.second);
    values_.erase(found);
    return value;
  }

 private:
  static constexpr std::size_t kMost = 65536;

  std::unordered_map<std::uint64_t, std::pair<T, std::list<std::uint64_t>::iterator>> values_;
  std::list<std::uint64_t> order_;
};

/// What is known of groups.
struct KnownGroups {
  std::unordered_map<std::uint64_t, UnitId> in_pool;
  RecentGroups<SequenceState> closed;  ///< What becomes of members that come after that.
  RecentGroups<std::uint64_t> fewer;   ///< Members abandoned before the first one came.
  std::uint64_t largest = 1;           ///< The largest group that ever began.
};

}  // namespace batchwright
