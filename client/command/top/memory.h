#pragma once

#include <boost/json/value.hpp>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace batchwright {

/// One client's figures of the last ten seconds.
struct RecentShares {
  double waits = 0.0;     ///< Share of the time for which the client waited for the daemon.
  double awaited = 0.0;   ///< Share of the time for which the daemon waited for the client.
  double per_second = 0;  ///< Batches delivered to it.
};

/// The samples of each subscription, as long as the figures of the last seconds need them. The
/// daemon's page has sums since a client subscribed; differences of two pages say how it is now.
/// Threads: one at a time.
class TopMemory {
 public:
  static constexpr double kSpanSeconds = 10.0;

  /// Takes in a page /stats, of one daemon or merged(). A daemon that was started again begins its
  /// clients' memory again, and what is no longer on the page is forgotten.
  void add(const boost::json::value& stats);
  /// Empty before there are two pages with this subscription, of different times.
  std::optional<RecentShares> recent(const boost::json::value& feed,
                                     const boost::json::value& client) const;

 private:
  struct Sample {
    double uptime = 0.0;
    double waited_for_daemon = 0.0;
    double waited_for_client = 0.0;
    double batches = 0.0;
  };
  static std::string key_of(const boost::json::value& feed, const boost::json::value& client);

  std::map<std::string, std::deque<Sample>> samples_;  ///< The oldest first.
};

}  // namespace batchwright
