#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "client/command/top/keys.h"
#include "client/command/top/line.h"
#include "client/command/top/memory.h"
#include "client/command/top/overview.h"

namespace batchwright {

/// The view of `batchwright top`: pages and keys go in, lines come out. Nothing here knows a
/// terminal, a clock or a connection.
/// Threads: one at a time.
class TopModel {
 public:
  /// `address`: of the daemon's pages, as it is shown.
  explicit TopModel(std::string address) : address_(std::move(address)) {}

  /// A new page /stats.
  void take(boost::json::value stats);
  /// There is no newer page, because of `why`.
  void miss(std::string why) { trouble_ = std::move(why); }
  /// Not for quit, suspend and redraw, which are the terminal's affair.
  void press(TopKey key);
  /// At most `size.rows` lines of at most `size.columns` columns. Keeps the feed at the cursor, and
  /// the place within an open feed, on the screen.
  std::vector<TopLine> draw(TopSize size);

 private:
  const boost::json::value* opened() const;
  void move(TopKey key, const std::vector<FeedRow>& rows);
  void sort_by(TopKey key);
  std::vector<TopLine> head(const std::vector<FeedRow>& rows, std::size_t columns) const;
  /// `room`: what the head leaves.
  std::vector<TopLine> foot(const std::vector<FeedRow>& rows, TopSize room) const;
  std::vector<TopLine> body(const std::vector<FeedRow>& rows, TopSize room);

  std::string address_;
  boost::json::value stats_;  ///< The last page; null when none has come yet.
  std::string trouble_;       ///< Why there is no newer page; empty when there is one.
  TopMemory memory_;
  FeedOrder order_;
  std::string chosen_;         ///< The feed at the cursor: it keeps it when the order changes.
  std::string opened_;         ///< The feed that is shown alone; empty: all are.
  std::size_t first_ = 0;      ///< The first row, or line of an open feed, that is shown.
  std::size_t page_rows_ = 1;  ///< Rows that fit on the screen.
  std::size_t lines_ = 0;      ///< Lines of the open feed.
  bool helps_ = false;
};

/// Host and state in one line, then figures of the process.
std::vector<TopLine> head_lines(const boost::json::value& stats, const std::vector<FeedRow>& rows,
                                const std::string& address, std::size_t columns);

/// All that there is to show of a page, for paper: the table, then each feed, nothing cut.
std::vector<TopLine> snapshot(const boost::json::value& stats, const TopMemory& memory,
                              const std::string& address);

}  // namespace batchwright
