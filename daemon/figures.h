#pragma once

#include <chrono>
#include <cstdint>

#include "daemon/delivery/delivery.h"
#include "daemon/stats/stats.h"

namespace batchwright {

/// Gathers what the rooms know, for whoever shows it: /stats, /metrics and the dashboard.
///
/// Lifetime: `server` outlives it. What source() returns points into the feeds' counters, and is
///   to be rendered before the loop goes on.
/// Threads: the event loop only.
class Figures {
 public:
  Figures(const Server& server, std::uint64_t memory_ceiling_bytes);

  /// All figures as they are now. Takes some ten microseconds, and some more for each feed.
  StatsSource source() const;

 private:
  const Server& server_;
  std::uint64_t memory_ceiling_bytes_;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace batchwright
