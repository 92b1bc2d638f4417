#include "client/command/top/overview.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "client/command/top/figures.h"

namespace batchwright {
namespace {

/// Columns in the order of FeedColumn.
struct ColumnRow {
  const char* title;
  bool is_text;
  unsigned dispensable;
};
constexpr std::array<ColumnRow, static_cast<std::size_t>(FeedColumn::count)> kColumns{{
    // FeedColumn::worst_first is an order and no column.
    {"", false, 0},
    {"feed", true, 0},
    {"state", true, 7},
    {"verdict", true, 0},
    {"batches/s", false, 2},
    {"bytes/s", false, 6},
    {"clients", false, 4},
    {"worst wait", false, 3},
    {"corrupt", false, 5},
    {"skipped", false, 8},
}};

const ColumnRow& row_of(FeedColumn column) { return kColumns[static_cast<std::size_t>(column)]; }

FeedRow row_of(const boost::json::value& feed, const TopMemory& memory) {
  FeedRow row;
  row.name = text_at(feed, "name");
  row.state = text_at(feed, "state");
  row.verdict = text_at(feed, "verdict.text");
  row.batches_per_second = number_or_0(feed, "rates.batches_per_second");
  row.bytes_per_second = number_or_0(feed, "rates.bytes_per_second");
  row.clients = items_at(feed, "subscribers").size();
  for (const auto& client : items_at(feed, "subscribers")) {
    const auto recent = memory.recent(feed, client);
    // Of a client of which there is one page it is not known.
    if (recent) row.worst_wait = std::max(row.worst_wait.value_or(0.0), recent->waits);
  }
  row.corrupt = number_or_0(feed, "counters.corrupt_records");
  row.skipped = number_or_0(feed, "counters.sequences_skipped");
  row.why = text_at(feed, "reason");
  if (row.why.empty()) row.why = text_at(feed, "verdict.why");
  return row;
}

/// Less than 0 where `a` comes before `b` in ascending order, more where it comes after.
int compare(const FeedRow& a, const FeedRow& b, FeedColumn column) {
  const auto figures = [](double x, double y) { return x < y ? -1 : x > y ? 1 : 0; };
  switch (column) {
    case FeedColumn::feed: return a.name.compare(b.name);
    case FeedColumn::state: return a.state.compare(b.state);
    case FeedColumn::verdict: return a.verdict.compare(b.verdict);
    case FeedColumn::batches: return figures(a.batches_per_second, b.batches_per_second);
    case FeedColumn::bytes: return figures(a.bytes_per_second, b.bytes_per_second);
    case FeedColumn::clients: return a.clients < b.clients ? -1 : a.clients > b.clients ? 1 : 0;
    case FeedColumn::worst_wait:
      return figures(a.worst_wait.value_or(0.0), b.worst_wait.value_or(0.0));
    case FeedColumn::corrupt: return figures(a.corrupt, b.corrupt);
    case FeedColumn::skipped: return figures(a.skipped, b.skipped);
    case FeedColumn::worst_first:
    case FeedColumn::count: break;
  }
  return 0;
}

bool is_worse(const FeedRow& a, const FeedRow& b) {
  // The dashboard's order (overview.js), down to the names that settle a tie.
  const auto rank = [](const FeedRow& row) {
    return std::tuple(severity_of(row), row.worst_wait.value_or(0.0), row.clients);
  };
  return rank(a) != rank(b) ? rank(a) > rank(b) : a.name < b.name;
}

bool comes_before(const FeedRow& a, const FeedRow& b, const FeedOrder& order) {
  if (order.column == FeedColumn::worst_first) {
    return order.reversed ? is_worse(b, a) : is_worse(a, b);
  }
  const int found = compare(a, b, order.column);
  // Not reversed with the column: of equal ones the worse stays in front.
  if (found == 0) return is_worse(a, b);
  return order.descends() ? found > 0 : found < 0;
}

std::vector<Piece> cells_of(const FeedRow& row, bool chosen) {
  const Tone all = severity_of(row) == 4 ? Tone::bad : Tone::plain;
  const Tone verdict = tone_of_verdict(row.verdict);
  // Bound by the daemon, so the wait is what to look at.
  const Tone wait = row.worst_wait && severity_of(row) == 3 ? Tone::warning : all;
  return {{(chosen ? "> " : "  ") + row.name, chosen ? Tone::strong : all},
          {row.state, all},
          {row.verdict, verdict},
          {rate_text(row.batches_per_second), all},
          {memory_text(row.bytes_per_second) + "/s", all},
          {whole_text(static_cast<double>(row.clients)), all},
          {row.worst_wait ? share_text(row.worst_wait) : std::string(kNone), wait},
          {whole_text(row.corrupt), all},
          {whole_text(row.skipped), all}};
}

}  // namespace

bool FeedOrder::descends() const { return row_of(column).is_text == reversed; }

int severity_of(const FeedRow& row) {
  // As in overview.js; what is not named is idle.
  static constexpr std::array<std::pair<std::string_view, int>, 12> kSeverity{
      {{"failed", 4},
       {"producer-bound", 3},
       {"pool-bound", 3},
       {"staleness-bound", 3},
       {"blocked", 3},
       {"slot-bound", 3},
       {"storage-bound", 3},
       {"processor-bound", 3},
       {"assembly-bound", 3},
       {"feature-bound", 3},
       {"mixed", 2},
       {"trainer-bound", 1}}};
  if (row.state == "failed") return 4;
  const auto found = std::find_if(kSeverity.begin(), kSeverity.end(),
                                  [&](const auto& each) { return each.first == row.verdict; });
  const int bound = found == kSeverity.end() ? 0 : found->second;
  return row.state == "starting" ? std::max(2, bound) : bound;
}

std::vector<FeedRow> feed_rows(const boost::json::value& stats, const TopMemory& memory,
                               const FeedOrder& order) {
  std::vector<FeedRow> rows;
  for (const auto& feed : items_at(stats, "feeds")) rows.push_back(row_of(feed, memory));
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const FeedRow& a, const FeedRow& b) { return comes_before(a, b, order); });
  return rows;
}

std::string failed_text(const std::vector<FeedRow>& rows) {
  const auto failed = std::count_if(rows.begin(), rows.end(),
                                    [](const FeedRow& row) { return row.state == "failed"; });
  if (failed == 0) return {};
  return fmt::format("{} of {} {} failed", failed, rows.size(),
                     rows.size() == 1 ? "feed" : "feeds");
}

TopTable feed_table(const std::vector<FeedRow>& rows, const FeedOrder& order,
                    const std::string& chosen) {
  TopTable table;
  for (std::size_t i = 1; i < kColumns.size(); ++i) {
    const ColumnRow& column = kColumns[i];
    // Two blanks stand where the rows have the cursor.
    std::string title = fmt::format("{}{}", i == 1 ? "  " : "", column.title);
    if (order.column == static_cast<FeedColumn>(i)) {
      title += fmt::format(" {}", order.descends() ? kDescending : kAscending);
    }
    table.columns.push_back({std::move(title), column.is_text, column.dispensable});
  }
  for (const FeedRow& row : rows) table.rows.push_back(cells_of(row, row.name == chosen));
  return table;
}

std::string words_of(const FeedOrder& order) {
  if (order.column == FeedColumn::worst_first) {
    return order.reversed ? "the worst last" : "the worst first";
  }
  const ColumnRow& column = row_of(order.column);
  return fmt::format("by {}{}", column.title, order.reversed ? ", reversed" : "");
}

Tone tone_of_verdict(const std::string& verdict) {
  if (verdict == "trainer-bound") return Tone::good;
  if (verdict == "failed") return Tone::bad;
  if (verdict == "idle" || verdict.empty()) return Tone::faint;
  return Tone::warning;
}

}  // namespace batchwright
