#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/stats/metrics/metrics_page.h"
#include "daemon/stats/report.h"

namespace batchwright {

/// What one rank of one process has of a feed, over all of its subscriptions. Neither sessions nor
/// subscriptions have series of their own: each reconnect and each epoch could bring another one.
struct Trainer {
  std::string labels;
  double waited_for_daemon = 0.0;
  double waited_for_client = 0.0;
  std::uint64_t credit = 0;
  std::uint64_t held = 0;
  std::uint64_t lag = 0;
  std::pair<Epoch, Step> position;  ///< Position of the subscription that is furthest behind.
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;
};

/// Whole or not, as pages write it.
using Number = std::variant<std::uint64_t, double>;

/// A state of a feed that is one of few: a line for each of them, 1 for the one that it is in, so
/// that a state that ends is seen to end.
struct FeedChoice {
  std::string_view label;
  std::span<const std::string_view> all;
  std::string_view (*of)(const FeedStatus&);
};
/// Lines that no other source gives.
struct MetricLines {
  std::string_view labels;
  void (*write)(MetricsPage&, const StatsSource&);
};

/// Where a metric's figures come from. All but the first have a line for each feed, live feed,
/// trainer or disk. Producers have none: they may be many, and have ever new names.
using MetricSource = std::variant<Number (*)(const StatsSource&), Number (*)(const FeedStatus&),
                                  Number (*)(const LiveStatus&), Number (*)(const Trainer&),
                                  Number (*)(const ReadDiskStats&), Number (*)(const DiskStats&),
                                  FeedCounter, ModeCounter, FeedChoice, MetricLines>;

/// One metric: /metrics, /stats and the table in REFERENCE.md are made of these rows.
struct MetricRow {
  std::string name;       ///< Without the prefix batchwright_, except for what every process has.
  std::string_view type;  ///< "gauge", "counter" or "histogram".
  std::string_view help;  ///< What it counts or measures, in a sentence.
  MetricSource source;
  /// Key of the same figure in /stats, within the object of the feed, its `live` or the disk; "a.b"
  /// is within a.
  std::string_view stats = "";
};

/// Every metric, in the order of /metrics.
const std::vector<MetricRow>& metric_rows();

/// Those of live feeds, which are among them.
const std::vector<MetricRow>& live_metric_rows();

/// The metric's name on the page.
std::string full_name(const MetricRow& row);
/// The names of its labels, as a list for people.
std::string labels_of(const MetricRow& row);
/// The table of REFERENCE.md.
std::string metrics_table();

}  // namespace batchwright
