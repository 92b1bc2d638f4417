#pragma once

#include <chrono>
#include <cstddef>
#include <set>
#include <stop_token>

#include "formats/formats.h"

namespace batchwright {

/// The order in which feeds that are opened at the same time claim memory: that of the file, so
/// that which of them find room does not depend on whose disk is faster.
///
/// Threads: any.
class MemoryTurns {
 public:
  /// How long a feed waits for those above it.
  static constexpr std::chrono::seconds kLongest{10};

  explicit MemoryTurns(std::chrono::milliseconds longest = kLongest) : longest_(longest) {}

  /// The feed with this place in the file is to be opened. Twice is fine.
  void enter(std::size_t place);
  /// It has claimed its memory, or will not.
  void leave(std::size_t place);
  /// No feed is to claim.
  void clear();
  /// Waits until no feed above this place is to claim, for a time at most.
  void await(std::size_t place, const std::stop_token& stop);
  /// The same for all feeds but this one.
  void await_others(std::size_t place, const std::stop_token& stop);

 private:
  template <class Done>
  void await(const std::stop_token& stop, Done done);

  const std::chrono::milliseconds longest_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::set<std::size_t> places_ GUARDED_BY(mutex_);
};

}  // namespace batchwright
