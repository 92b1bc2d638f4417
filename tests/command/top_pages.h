#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "client/command/top/model.h"

namespace batchwright::testing {

/// A client of a feed, as /stats shows it: `waits` is the share of `uptime` that it waited for the
/// daemon.
std::string top_client(const std::string& name, double uptime = 0, double waits = 0);

/// What a test says of a feed.
struct Shown {
  std::string verdict = "storage-bound";
  double batches = 812.4;
  int corrupt = 0;
  std::string clients;  ///< Each by top_client(), with commas between them.
};

std::string top_feed(const std::string& name, const Shown& shown = {});

/// The page /stats with these feeds.
boost::json::value top_page(const std::string& feeds, double uptime = 75);

/// `count` feeds, corpus-00 and on: the larger the number, the more batches and the fewer faults.
std::string many_feeds(int count);

TopModel model_of(const boost::json::value& stats);

/// What the model draws on a screen of this size.
std::vector<std::string> texts(TopModel& model, TopSize size);

bool has(const std::vector<std::string>& lines, const std::string& what);

/// The line that has `what`; empty when none has.
std::string line_with(const std::vector<std::string>& lines, const std::string& what);

void press(TopModel& model, TopKey key, int times = 1);

constexpr TopSize kWide{140, 40};
constexpr TopSize kWider{200, 40};

}  // namespace batchwright::testing
