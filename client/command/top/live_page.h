#pragma once

#include <boost/json/value.hpp>
#include <vector>

#include "client/command/top/feed_page.h"
#include "client/command/top/line.h"

namespace batchwright {

/// Whether the feed has producers in place of a dataset.
bool is_live(const boost::json::value& feed);

/// What a live feed has beside others, as its card on the dashboard has it: its pool, its versions
/// and its producers; nothing for a feed with a dataset. Where several hosts serve it, of the one
/// that is worst off.
std::vector<TopLine> live_lines(const boost::json::value& feed, PageWidth width);

}  // namespace batchwright
