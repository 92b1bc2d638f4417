#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "client/command/top/line.h"

namespace batchwright {

/// What one of several daemons answered.
struct HostPage {
  std::string address;
  boost::json::value stats;  ///< Its page /stats; null where it did not answer.
  std::string trouble;       ///< Why it did not; empty otherwise.
};

/// One page of all: the feeds of one name are one feed. Rates, counters, slots and memory are sums,
/// times of stages those of the slowest, state and verdict those of the worst, whose host stands
/// before the reason. Each client has a `host`; a feed has `hosts`, one row a daemon; the page has
/// `missing`, a line for each daemon that did not answer. A single page is as it came.
boost::json::value merged(const std::vector<HostPage>& pages);

/// The daemons that did not answer; nothing for the page of one.
std::vector<TopLine> missing_lines(const boost::json::value& stats, std::size_t columns);

/// The daemons of a feed in one table; nothing for the page of one.
std::vector<TopLine> host_lines(const boost::json::value& feed, std::size_t columns);

}  // namespace batchwright
