#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "daemon/delivery/delivery.h"
#include "daemon/stats/stats.h"

namespace batchwright {

/// Gathers what the rooms know for /stats, /metrics and the dashboard. Once a second it takes a
/// sample of each feed, of which rates and verdicts are made.
///
/// Lifetime: `loop` and `server` outlive it. What source() returns points into this object and
///   into the log, and is to be rendered before the loop goes on.
/// Threads: the event loop only, or before it runs.
class Figures {
 public:
  Figures(boost::asio::io_context& loop, Server& server, std::uint64_t memory_ceiling_bytes);

  /// All figures as they are now. Takes some hundred microseconds, for the most part the kernel's
  /// for what it knows of the process.
  StatsSource source() const;

 private:
  using Time = std::chrono::steady_clock::time_point;

  /// The figures of a feed's last seconds.
  struct Past {
    std::string name;
    FeedSample latest;
    FeedWindow window;
  };

  void sample();
  void sample(const FeedStatus& feed, Time now);
  void add_past(FeedStatus& feed, unsigned assembly_threads) const;
  /// The other feed whose batches took the assembly threads longest.
  BusiestOther busiest_other(ArenaNumber than) const;

  Server& server_;
  std::uint64_t memory_ceiling_bytes_;
  std::string host_;
  Time started_ = std::chrono::steady_clock::now();
  std::chrono::system_clock::time_point started_by_calendar_ = std::chrono::system_clock::now();
  std::map<ArenaNumber, Past> past_;  ///< Samples, by the feed's number.
  BusySeconds busy_;                  ///< Busy time for all feeds, removed ones included.
  boost::asio::steady_timer timer_;
};

}  // namespace batchwright
