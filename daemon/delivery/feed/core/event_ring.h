#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/delivery/feed/core/events.h"

namespace batchwright {

std::string_view name_of(const FeedEvent& event);

/// The last events of a feed, as small values, for the log of a broken invariant.
/// Threads: one at a time.
class EventRing {
 public:
  static constexpr std::size_t kEvents = 256;

  void add(const FeedEvent& event, WaitingTimes::Time now);
  /// The oldest first, one a line: microseconds before the last one, what it was, and of what.
  std::string describe() const;

 private:
  struct Entry {
    WaitingTimes::Time when;
    std::uint8_t kind = 0;     ///< Its place in FeedEvent.
    std::uint64_t first = 0;   ///< A session, or an epoch.
    std::uint64_t second = 0;  ///< A subscription's number, or a batch.
  };
  std::array<Entry, kEvents> entries_{};
  std::size_t added_ = 0;
};

}  // namespace batchwright
