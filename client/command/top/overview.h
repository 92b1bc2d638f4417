#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/command/top/line.h"
#include "client/command/top/memory.h"
#include "client/command/top/table.h"

namespace batchwright {

// All feeds in one table, the worst first: the same columns, words and order as the overview of the
// dashboard (daemon/stats/dashboard/overview.js).

/// The values in the row of a feed, by which rows are sorted.
struct FeedRow {
  std::string name;
  std::string state;
  std::string verdict;
  double batches_per_second = 0.0;
  double bytes_per_second = 0.0;
  std::size_t clients = 0;
  std::optional<double> worst_wait;  ///< A share of the last seconds; empty: no client is there.
  double corrupt = 0.0;
  double skipped = 0.0;
  std::string why;  ///< Why the feed failed, or the figures behind the verdict.
};

enum class FeedColumn : std::uint8_t {
  worst_first,  ///< No column: the order that an operator needs.
  feed,
  state,
  verdict,
  batches,
  bytes,
  clients,
  worst_wait,
  corrupt,
  skipped,
  count,
};

struct FeedOrder {
  FeedColumn column = FeedColumn::worst_first;
  bool reversed = false;

  /// Texts from A to Z and figures from the largest down, unless reversed.
  bool descends() const;
};

/// The severity of a feed's state, 0 to 4: failed, bound by the daemon, mixed or starting, well,
/// idle.
int severity_of(const FeedRow& row);

std::vector<FeedRow> feed_rows(const boost::json::value& stats, const TopMemory& memory,
                               const FeedOrder& order);
/// "2 of 50 feeds failed"; empty when none has.
std::string failed_text(const std::vector<FeedRow>& rows);
/// The table; the row of the feed `chosen` is marked.
TopTable feed_table(const std::vector<FeedRow>& rows, const FeedOrder& order,
                    const std::string& chosen);
/// "the worst first", or "by clients, reversed".
std::string words_of(const FeedOrder& order);

Tone tone_of_verdict(const std::string& verdict);

}  // namespace batchwright
