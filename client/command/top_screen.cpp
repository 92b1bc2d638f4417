#include "client/command/top_screen.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <utility>

#include "client/command/top_figures.h"

namespace batchwright {
namespace {

namespace json = boost::json;

constexpr std::size_t kNameColumns = 16;
constexpr std::size_t kRowColumns = 80;  // a client's line without its bar
constexpr std::size_t kNarrowestBar = 7;
constexpr std::size_t kWidestBar = 40;

/// A feed's lines, and how many of them are shown.
struct Block {
  std::vector<TopLine> head;  ///< Most important first.
  TopLine columns;            ///< Above the clients.
  std::vector<TopLine> clients;
  std::size_t shown_head = 0;
  std::size_t shown_clients = 0;
};

TopLine line(std::string text, Tone tone = Tone::plain) { return {{{std::move(text), tone}}}; }

Tone tone_of(const std::string& verdict) {
  if (verdict == "trainer-bound") return Tone::good;
  if (verdict == "failed") return Tone::bad;
  if (verdict == "idle" || verdict.empty()) return Tone::faint;
  return Tone::warning;
}

std::string fitting(std::string text, std::size_t columns) {
  if (text.size() <= columns) return text;
  return columns < 3 ? text.substr(0, columns) : text.substr(0, columns - 2) + "..";
}

/// Text over lines of at most `columns`, each with two blanks in front.
std::vector<TopLine> wrapped(const std::string& text, std::size_t columns) {
  std::vector<TopLine> lines;
  const std::size_t room = std::max<std::size_t>(columns, 12) - 2;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.size(), at + room);
    if (end < text.size()) {
      const std::size_t blank = text.rfind(' ', end);
      if (blank != std::string::npos && blank > at) end = blank;
    }
    lines.push_back(line("  " + text.substr(at, end - at)));
    at = end + (end < text.size() && text[end] == ' ' ? 1 : 0);
  }
  return lines;
}

TopLine verdict_line(const json::value& feed) {
  const std::string verdict = text_at(feed, "verdict.text");
  const std::string state = text_at(feed, "state");
  std::string told = verdict.empty() || state == "starting" ? state : verdict;
  const Tone tone = tone_of(told);
  std::transform(told.begin(), told.end(), told.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return {{{text_at(feed, "name") + "  ", Tone::strong}, {told, tone}}};
}

std::string why_of(const json::value& feed) {
  const std::string reason = text_at(feed, "reason");
  return reason.empty() ? text_at(feed, "verdict.why") : reason;
}

/// What the plan of the epoch at hand promises.
std::optional<double> planned_padding(const json::value& feed) {
  const json::array& plans = items_at(feed, "plans");
  return plans.empty() ? std::nullopt : number_at(plans.front(), "padded_share");
}

TopLine rates_line(const json::value& feed) {
  std::string text = fmt::format("  {} batches/s  {}/s  {} frames/s  padding {}",
                                 count_text(number_or_0(feed, "rates.batches_per_second")),
                                 bytes_text(number_or_0(feed, "rates.bytes_per_second")),
                                 count_text(number_or_0(feed, "rates.frames_per_second")),
                                 share_text(number_at(feed, "rates.padded_share")));
  if (const auto planned = planned_padding(feed)) text += " (plan " + share_text(planned) + ")";
  return line(std::move(text));
}

TopLine slots_line(const json::value& feed) {
  const auto of = [&](const char* state) {
    return static_cast<unsigned long long>(number_or_0(feed, std::string("slots.") + state));
  };
  return line(fmt::format("  slots: {} held, {} ready, {} filling, {} free  of {}  {}", of("held"),
                          of("ready"), of("filling"), of("free"),
                          memory_text(number_or_0(feed, "slot_bytes")), text_at(feed, "pinned")));
}

std::string stage_text(const json::value& feed, const char* stage, const char* name) {
  const auto middle = number_at(feed, fmt::format("stages.{}.p50_seconds", stage));
  if (!middle) return {};
  return fmt::format("  {} {} (p99 {})", name, seconds_text(middle),
                     seconds_text(number_at(feed, fmt::format("stages.{}.p99_seconds", stage))));
}

TopLine stages_line(const json::value& feed) {
  return line(stage_text(feed, "assemble", "assemble") + stage_text(feed, "readahead", "read") +
              stage_text(feed, "wait_for_slot", "slot") + stage_text(feed, "deliver", "deliver"));
}

std::string client_row(const json::value& client, std::size_t columns) {
  const auto whole = [&](const char* key) {
    return static_cast<unsigned long long>(number_or_0(client, key));
  };
  const auto waited = [&](const char* key) { return seconds_text(number_at(client, key)); };
  const std::string waiting = text_at(client, "waiting");
  const double share = number_or_0(client, "position_share");
  std::string row = fmt::format(
      "  {:<{}} {:>7} {:>6} {:>12} {:>12}  {:>2}/{:<2} {:>3}",
      fitting(text_at(client, "client"), kNameColumns), kNameColumns,
      fmt::format("{}/{}", whole("rank"), whole("ranks")), waiting == "none" ? "-" : waiting,
      waited("waited_for_daemon_seconds"), waited("waited_for_client_seconds"),
      whole("credit_batches"), whole("window_batches"), whole("lag_batches"));
  row += fmt::format("{:>4} {:>3.0f} %", whole("epoch"), 100 * share);
  if (columns > kRowColumns + kNarrowestBar) {
    row += " " + bar_text(share, std::min(columns - kRowColumns - 1, kWidestBar));
  }
  return row;
}

TopLine column_names() {
  return line(fmt::format("  {:<{}} {:>7} {:>6} {:>12} {:>12} {:>6} {:>3}{:>4} {:>5}", "client",
                          kNameColumns, "rank", "now", "for daemon", "for client", "credit", "lag",
                          "ep", "place"),
              Tone::faint);
}

Tone tone_of_client(const json::value& client) {
  return text_at(client, "waiting") == "daemon" ? Tone::warning : Tone::plain;
}

Block block_of(const json::value& feed, std::size_t columns) {
  Block block;
  block.head.push_back(verdict_line(feed));
  for (TopLine& why : wrapped(why_of(feed), columns)) block.head.push_back(std::move(why));
  if (text_at(feed, "state") == "failed") return block;
  block.head.push_back(rates_line(feed));
  block.head.push_back(slots_line(feed));
  if (TopLine stages = stages_line(feed); stages.columns() > 0) {
    block.head.push_back(std::move(stages));
  }
  block.columns = column_names();
  for (const json::value& client : items_at(feed, "subscribers")) {
    block.clients.push_back(line(client_row(client, columns), tone_of_client(client)));
  }
  return block;
}

/// Gives the feeds' heads their lines in turn, the first of each first. Returns what is left.
std::size_t share_heads(std::vector<Block>& blocks, std::size_t rows) {
  for (bool more = true; more && rows > 0;) {
    more = false;
    for (Block& block : blocks) {
      if (rows == 0 || block.shown_head == block.head.size()) continue;
      ++block.shown_head;
      --rows;
      more = true;
    }
  }
  return rows;
}

/// The same for clients. Names of columns cost a line with the first, and so does the count of
/// those that are left out.
void share_clients(std::vector<Block>& blocks, std::size_t rows) {
  for (Block& block : blocks) {
    if (block.clients.empty() || rows < 2) continue;
    block.shown_clients = 1;
    rows -= 2;
  }
  for (bool more = true; more && rows > 0;) {
    more = false;
    for (Block& block : blocks) {
      if (rows == 0 || block.shown_clients == 0) continue;
      if (block.shown_clients == block.clients.size()) continue;
      ++block.shown_clients;
      --rows;
      more = true;
    }
  }
}

void add_clients(std::vector<TopLine>& lines, const Block& block) {
  if (block.shown_clients == 0) return;
  lines.push_back(block.columns);
  const bool all = block.shown_clients == block.clients.size();
  const std::size_t shown = all ? block.shown_clients : block.shown_clients - 1;
  lines.insert(lines.end(), block.clients.begin(),
               block.clients.begin() + static_cast<std::ptrdiff_t>(shown));
  if (!all) {
    lines.push_back(
        line(fmt::format("  and {} more clients", block.clients.size() - shown), Tone::faint));
  }
}

std::vector<TopLine> feeds_lines(std::vector<Block> blocks, std::size_t rows) {
  std::vector<TopLine> lines;
  const std::size_t feeds = blocks.size();
  const bool cut = feeds > rows;
  if (cut) blocks.resize(rows == 0 ? 0 : rows - 1);
  const std::size_t left = share_heads(blocks, cut ? blocks.size() : rows);
  const std::size_t gaps = !cut && feeds > 1 && left >= feeds - 1 ? feeds - 1 : 0;
  share_clients(blocks, cut ? 0 : left - gaps);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i > 0 && gaps > 0) lines.emplace_back();
    const auto shown = static_cast<std::ptrdiff_t>(blocks[i].shown_head);
    lines.insert(lines.end(), blocks[i].head.begin(), blocks[i].head.begin() + shown);
    add_clients(lines, blocks[i]);
  }
  if (cut && rows > 0) {
    lines.push_back(line(fmt::format("and {} more feeds", feeds - blocks.size()), Tone::faint));
  }
  return lines;
}

std::vector<TopLine> title_lines(const TopView& view) {
  const json::value& stats = view.stats;
  TopLine title{{{"batchwright " + text_at(stats, "version"), Tone::strong},
                 {"  " + printable_ascii(view.address), Tone::plain}}};
  if (stats.is_null()) return {title};
  title.pieces.push_back(
      {fmt::format("  up {}  {} sessions", seconds_text(number_at(stats, "uptime_seconds")),
                   number_or_0(stats, "sessions")),
       Tone::plain});
  return {title, line(fmt::format("arenas {} of {}  resident {}  CPU {}",
                                  memory_text(number_or_0(stats, "arena_bytes")),
                                  memory_text(number_or_0(stats, "memory_ceiling_bytes")),
                                  memory_text(number_or_0(stats, "resident_bytes")),
                                  seconds_text(number_at(stats, "cpu_seconds"))),
                      Tone::faint)};
}

void cut_to(TopLine& line, std::size_t columns) {
  std::size_t left = columns;
  for (Piece& piece : line.pieces) {
    piece.text = fitting(std::move(piece.text), left);
    left -= piece.text.size();
  }
}

}  // namespace

std::size_t TopLine::columns() const { return text().size(); }

std::string TopLine::text() const {
  std::string all;
  for (const Piece& piece : pieces) all += piece.text;
  return all;
}

std::vector<TopLine> draw_top(const TopView& view, TopSize size) {
  std::vector<TopLine> lines = title_lines(view);
  if (!view.trouble.empty()) {
    const std::string told = "no answer, trying again: " + printable_ascii(view.trouble);
    for (TopLine& part : wrapped(told, size.columns)) {
      part.pieces[0].tone = Tone::bad;
      lines.push_back(std::move(part));
    }
  }
  if (!view.stats.is_null()) {
    lines.emplace_back();
    std::vector<Block> blocks;
    for (const json::value& feed : items_at(view.stats, "feeds")) {
      blocks.push_back(block_of(feed, size.columns));
    }
    const std::size_t endless = 1'000'000;
    const std::size_t rows = size.rows == 0 ? endless : size.rows;
    auto feeds = feeds_lines(std::move(blocks), rows > lines.size() ? rows - lines.size() : 0);
    std::move(feeds.begin(), feeds.end(), std::back_inserter(lines));
  }
  if (size.rows != 0 && lines.size() > size.rows) lines.resize(size.rows);
  for (TopLine& each : lines) cut_to(each, size.columns);
  return lines;
}

}  // namespace batchwright
