#include "client/command/top/model.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "client/command/top/feed_page.h"
#include "client/command/top/figures.h"
#include "client/command/top/hosts.h"

namespace batchwright {
namespace {

namespace json = boost::json;

constexpr std::size_t kLeastBody = 4;  // rows that head and foot leave to the rest
constexpr std::size_t kLeastWhy =
    3;  // lines of the reason below the table, of which there are more

constexpr const char* kHelp =
    "Arrows, j, k, PgUp, PgDn, Home, End: move.  Enter: the feed at the cursor with its clients.  "
    "Esc, Backspace: back to all feeds.  < and >: sort by another column.  r: reverse order. "
    " "
    "?: less.  q: quit.";

std::size_t place_of(const std::vector<FeedRow>& rows, const std::string& name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const FeedRow& row) { return row.name == name; });
  // A feed that is gone leaves the cursor at the top, with the worst.
  return found == rows.end() ? 0 : static_cast<std::size_t>(found - rows.begin());
}

/// Where a key leads from `at`, of `count` places.
std::size_t led_by(TopKey key, std::size_t at, std::size_t page, std::size_t count) {
  const std::size_t last = count == 0 ? 0 : count - 1;
  const std::size_t step = key == TopKey::page_up || key == TopKey::page_down ? page : 1;
  switch (key) {
    case TopKey::up:
    case TopKey::page_up: return at - std::min(at, step);
    case TopKey::down:
    case TopKey::page_down: return std::min(at + step, last);
    case TopKey::home: return 0;
    case TopKey::end: return last;
    default: return at;
  }
}

/// The lines from `first` on that there is room for.
void keep_shown(std::vector<TopLine>& lines, std::size_t first, std::size_t rows) {
  const auto begin = lines.begin();
  lines.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(first, lines.size())));
  if (lines.size() > rows) lines.resize(rows);
}

/// What a restart would meet; nothing where the last reload was taken.
std::vector<TopLine> reload_lines(const json::value& stats, std::size_t columns) {
  const std::string refusal = text_at(stats, "reload.last_refusal");
  if (refusal.empty()) return {};
  return wrapped(
      fmt::format("The configuration was refused {} ago, the previous one stays in effect; "
                  "a restart would fail: {}",
                  seconds_text(number_at(stats, "reload.last_seconds_ago")),
                  printable_ascii(refusal)),
      columns, Tone::bad);
}

std::string memory_in_use(const json::value& stats) {
  const std::string all = memory_text(number_or_0(stats, "resident_bytes"));
  const double files = number_or_0(stats, "mapped_file_bytes");
  if (files == 0.0) return fmt::format("memory in use {}", all);
  return fmt::format("memory in use {} (the kernel may drop {})", all, memory_text(files));
}

std::vector<TopLine> process_lines(const json::value& stats, const std::string& address,
                                   std::size_t columns) {
  std::string version = fmt::format("version {}", text_at(stats, "version"));
  const std::string user = text_at(stats, "user");
  if (!user.empty()) version = fmt::format("of user {}  {}", printable_ascii(user), version);
  return figure_lines(
      {version, fmt::format("up for {}", seconds_text(number_at(stats, "uptime_seconds"))),
       fmt::format("clients {}", whole_text(number_or_0(stats, "sessions"))), memory_in_use(stats),
       fmt::format("batches' memory {}", memory_text(number_or_0(stats, "arena_bytes"))),
       fmt::format("its limit {}", memory_text(number_or_0(stats, "memory_ceiling_bytes"))),
       printable_ascii(address)},
      columns, Tone::faint);
}

}  // namespace

std::vector<TopLine> head_lines(const json::value& stats, const std::vector<FeedRow>& rows,
                                const std::string& address, std::size_t columns) {
  const std::string failed = failed_text(rows);
  std::vector<TopLine> lines{
      {{{"Batchwright", Tone::strong},
        {"  " + text_at(stats, "host") + "  ", Tone::plain},
        {failed.empty() ? "live" : failed, failed.empty() ? Tone::good : Tone::bad}}}};
  append(lines, process_lines(stats, address, columns));
  append(lines, missing_lines(stats, columns));
  append(lines, reload_lines(stats, columns));
  return lines;
}

std::vector<TopLine> snapshot(const json::value& stats, const TopMemory& memory,
                              const std::string& address) {
  constexpr PageWidth kPaper{120, 100'000};  // what is read later is cut nowhere
  const std::vector<FeedRow> rows = feed_rows(stats, memory, {});
  std::vector<TopLine> lines = head_lines(stats, rows, address, kPaper.text);
  lines.emplace_back();
  append(lines, feed_table(rows, {}, {}).lines(kPaper.tables));
  for (const FeedRow& row : rows) {
    for (const auto& feed : items_at(stats, "feeds")) {
      if (text_at(feed, "name") != row.name) continue;
      lines.emplace_back();
      append(lines, feed_page(feed, memory, kPaper));
      break;
    }
  }
  return lines;
}

void TopModel::take(json::value stats) {
  stats_ = std::move(stats);
  trouble_.clear();
  memory_.add(stats_);
  // Removed by a reload: back to all feeds, instead of an empty page.
  if (opened() == nullptr) opened_.clear();
}

const json::value* TopModel::opened() const {
  if (opened_.empty()) return nullptr;
  const json::array& feeds = items_at(stats_, "feeds");
  const auto found = std::find_if(feeds.begin(), feeds.end(), [this](const json::value& feed) {
    return text_at(feed, "name") == opened_;
  });
  return found == feeds.end() ? nullptr : &*found;
}

void TopModel::press(TopKey key) {
  const std::vector<FeedRow> rows = feed_rows(stats_, memory_, order_);
  switch (key) {
    case TopKey::help: helps_ = !helps_; return;
    case TopKey::back:
      opened_.clear();
      first_ = 0;
      return;
    case TopKey::open:
      if (rows.empty() || !opened_.empty()) return;
      opened_ = chosen_ = rows[place_of(rows, chosen_)].name;
      first_ = 0;
      return;
    case TopKey::next_column:
    case TopKey::previous_column:
    case TopKey::reverse:
      // An open feed has nothing to sort.
      if (opened_.empty()) sort_by(key);
      return;
    default: move(key, rows);
  }
}

void TopModel::sort_by(TopKey key) {
  constexpr auto kCount = static_cast<std::size_t>(FeedColumn::count);
  if (key == TopKey::reverse) {
    order_.reversed = !order_.reversed;
    return;
  }
  // kCount - 1 forward is one back, without a negative number.
  const std::size_t step = key == TopKey::next_column ? 1 : kCount - 1;
  order_ = {static_cast<FeedColumn>((static_cast<std::size_t>(order_.column) + step) % kCount),
            false};
}

void TopModel::move(TopKey key, const std::vector<FeedRow>& rows) {
  if (!opened_.empty()) {
    first_ = led_by(key, first_, page_rows_, lines_);
    return;
  }
  if (rows.empty()) return;
  const std::size_t place = led_by(key, place_of(rows, chosen_), page_rows_, rows.size());
  // At the top the cursor stays at the worst feed, whichever that becomes.
  chosen_ = place == 0 && key == TopKey::home ? std::string() : rows[place].name;
}

std::vector<TopLine> TopModel::head(const std::vector<FeedRow>& rows, std::size_t columns) const {
  std::vector<TopLine> lines;
  if (stats_.is_null()) {
    lines.push_back({{{"Batchwright", Tone::strong},
                      {"  " + printable_ascii(address_) + "  ", Tone::plain},
                      {"asking the daemon", Tone::faint}}});
  } else {
    lines = head_lines(stats_, rows, address_, columns);
  }
  if (!trouble_.empty()) {
    // In the place of "live": what is shown below is as old as the last page.
    lines.front().pieces.back() = {"connection lost", Tone::bad};
    append(lines, wrapped(fmt::format("no answer, trying again: {}", printable_ascii(trouble_)),
                          columns, Tone::bad));
  }
  lines.emplace_back();
  return lines;
}

std::vector<TopLine> TopModel::foot(const std::vector<FeedRow>& rows, TopSize room) const {
  const std::size_t columns = room.columns;
  std::vector<TopLine> lines{{}};
  if (opened_.empty() && !rows.empty()) {
    const FeedRow& row = rows[place_of(rows, chosen_)];
    auto why = wrapped(fmt::format("{}: {}", row.name, row.why), columns);
    // The table and its titles, and the two lines of this foot, come before a reason's fourth line.
    const std::size_t taken = std::max(rows.size() + 1, kLeastBody) + 2;
    const std::size_t most = std::max(kLeastWhy, room.rows - std::min(room.rows, taken));
    if (why.size() > most) {
      why.resize(most);
      why.back().pieces.back().text += kCut;
    }
    append(lines, std::move(why));
  }
  if (helps_) {
    append(lines, wrapped(kHelp, columns, Tone::faint));
    return lines;
  }
  const bool all = opened_.empty();
  const std::size_t count = all ? rows.size() : lines_;
  const std::size_t last = std::min(first_ + page_rows_, count);
  std::string text = fmt::format("  {} to {} of {} {}", std::min(first_ + 1, last), last, count,
                                 all ? fmt::format("feeds, {}", words_of(order_)) : "lines");
  const std::string keys = all ? "  Enter: open  < >: sort" : "  Esc: all feeds";
  // Stays where room is short: the way to all other keys, and the way out.
  const std::string_view always = "  ?: keys  q: quit";
  if (text.size() + keys.size() + always.size() <= columns) text += keys;
  lines.push_back(line(text + std::string(always), Tone::faint));
  return lines;
}

std::vector<TopLine> TopModel::body(const std::vector<FeedRow>& rows, TopSize room) {
  if (const json::value* feed = opened()) {
    auto lines = feed_page(*feed, memory_, {room.columns, room.columns});
    lines_ = lines.size();
    // Kept for the next key: a page is as much as the screen shows.
    page_rows_ = std::max<std::size_t>(room.rows, 1);
    // A page with fewer lines than before is not to leave the screen empty.
    first_ = std::min(first_, lines_ - std::min(page_rows_, lines_));
    keep_shown(lines, first_, room.rows);
    return lines;
  }
  auto lines = feed_table(rows, order_, rows.empty() ? "" : rows[place_of(rows, chosen_)].name)
                   .lines(room.columns);
  page_rows_ = std::max<std::size_t>(room.rows, 2) - 1;  // below the titles
  const std::size_t cursor = place_of(rows, chosen_);
  first_ = std::min(first_, rows.size() - std::min(page_rows_, rows.size()));
  // The least shift that has the cursor's row on the screen.
  first_ = std::clamp(first_, cursor - std::min(cursor, page_rows_ - 1), cursor);
  TopLine titles = std::move(lines.front());
  keep_shown(lines, first_ + 1, page_rows_);
  lines.insert(lines.begin(), std::move(titles));
  return lines;
}

std::vector<TopLine> TopModel::draw(TopSize size) {
  const std::vector<FeedRow> rows = feed_rows(stats_, memory_, order_);
  std::vector<TopLine> lines = head(rows, size.columns);
  if (!stats_.is_null()) {
    // Where there is little room, what is around the feeds makes way.
    if (lines.size() + kLeastBody > size.rows) lines.resize(std::min<std::size_t>(1, lines.size()));
    // Asked for its size alone: what it says depends on body(), and is made after it.
    const TopSize left{size.columns, size.rows - std::min(size.rows, lines.size())};
    std::size_t below = foot(rows, left).size();
    if (lines.size() + kLeastBody + below > size.rows) below = 0;
    const std::size_t above = lines.size() + below;
    append(lines, body(rows, {size.columns, size.rows > above ? size.rows - above : 0}));
    if (below > 0) append(lines, foot(rows, left));
  }
  if (lines.size() > size.rows) lines.resize(size.rows);
  // A longer line would wrap, and push the last one off the screen.
  for (TopLine& each : lines) cut_to(each, size.columns);
  return lines;
}

}  // namespace batchwright
