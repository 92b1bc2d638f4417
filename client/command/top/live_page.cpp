#include "client/command/top/live_page.h"

#include <fmt/core.h>

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "client/command/top/figures.h"
#include "client/command/top/table.h"

namespace batchwright {
namespace {

namespace json = boost::json;

using Named = std::pair<std::string_view, std::string_view>;

// The words of the dashboard (daemon/stats/dashboard/live.js).
constexpr std::array<Named, 4> kPool{{{"waiting", "waiting for a step"},
                                      {"kept", "delivered, to be delivered again"},
                                      {"claimed", "to come: claimed, or missing from groups"},
                                      {"in_steps", "in steps that are kept, beside the pool"}}};
constexpr std::array<Named, 4> kDrops{{{"stale", "too stale"},
                                       {"late", "late for their group"},
                                       {"incomplete", "of an incomplete group"},
                                       {"abandoned", "abandoned by their producer"}}};
constexpr std::array<Named, 3> kClaimWaits{{{"trainer", "the first trainer to ask"},
                                            {"pool", "room in the pool"},
                                            {"staleness", "a newer version"}}};

std::string count_at(const json::value& from, std::string_view path) {
  return whole_text(number_or_0(from, path));
}

std::string time_at(const json::value& from, std::string_view path) {
  const auto seconds = number_at(from, path);
  return seconds ? seconds_text(seconds) : std::string(kNone);
}

std::string claims_of(const json::value& live) {
  if (number_or_0(live, "claims_waiting") == 0) return "claims that wait 0";
  std::string_view words = kNone;
  for (const auto& [reason, text] : kClaimWaits) {
    if (text_at(live, "claims_wait_for") == reason) words = text;
  }
  return fmt::format("claims that wait {}, for {} ({})", count_at(live, "claims_waiting"), words,
                     time_at(live, "longest_claim_seconds"));
}

std::string pushes_of(const json::value& live) {
  const std::string text = fmt::format("pushes that wait {}", count_at(live, "pushes_waiting"));
  if (number_or_0(live, "pushes_waiting") == 0) return text;
  return fmt::format("{} ({})", text, time_at(live, "longest_push_seconds"));
}

std::string groups_of(const json::value& live) {
  const std::string text = fmt::format("incomplete groups {}", count_at(live, "groups"));
  if (number_or_0(live, "groups") == 0) return text;
  return fmt::format("{}, lack {} ({})", text, count_at(live, "groups_missing"),
                     time_at(live, "oldest_group_seconds"));
}

/// What was dropped and why, and whether long sequences are dropped more often than short ones.
std::string dropped_of(const json::value& live) {
  std::string text;
  for (const auto& [reason, words] : kDrops) {
    const double count = number_or_0(live, fmt::format("dropped.{}", reason));
    if (count > 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", whole_text(count), words);
    }
  }
  if (text.empty()) return "dropped 0";
  return fmt::format("dropped {}  mean length dropped {} against {}", text,
                     count_text(number_or_0(live, "mean_dropped_length")),
                     count_text(number_or_0(live, "mean_accepted_length")));
}

std::vector<std::string> steps_of(const json::value& live) {
  return {fmt::format("version {}, announced {} ago", count_at(live, "version"),
                      time_at(live, "version_seconds_ago")),
          fmt::format("steps cut {}", count_at(live, "steps")),
          fmt::format("steps kept {}", count_at(live, "steps_kept")),
          fmt::format("next step {} of {} {}", count_at(live, "step_has"),
                      count_at(live, "step_needs"), text_at(live, "step_unit")),
          claims_of(live),
          pushes_of(live),
          groups_of(live),
          fmt::format("accepted {}, the last {} ago", count_at(live, "accepted"),
                      time_at(live, "pushed_seconds_ago")),
          dropped_of(live),
          fmt::format("rows zeroed {}", count_at(live, "rows_zeroed"))};
}

std::vector<std::string> pool_of(const json::value& live) {
  std::vector<std::string> figures;
  for (const auto& [state, words] : kPool) {
    figures.push_back(fmt::format("{} {}", count_at(live, fmt::format("pool.{}", state)), words));
  }
  figures.push_back(fmt::format("limit {}", count_at(live, "pool.limit")));
  figures.push_back(fmt::format(
      "{} of {}",
      memory_text(number_or_0(live, "pool.waiting_bytes") + number_or_0(live, "pool.kept_bytes")),
      memory_text(number_or_0(live, "pool.limit_bytes"))));
  return figures;
}

/// "0: 120", "1: 30" and so on: rows of steps by how many versions they were behind.
std::vector<std::string> staleness_of(const json::value& live) {
  std::vector<std::string> figures;
  double from = 0;
  for (const auto& range : items_at(live, "staleness.ranges")) {
    const auto last = number_at(range, "up_to");
    const std::string name = !last           ? fmt::format("{:.0f} and up", from)
                             : *last == from ? fmt::format("{:.0f}", from)
                                             : fmt::format("{:.0f} to {:.0f}", from, *last);
    from = last.value_or(from) + 1;
    const double rows = number_or_0(range, "rows");
    if (rows > 0) figures.push_back(fmt::format("{}: {}", name, whole_text(rows)));
  }
  return figures;
}

std::string name_of_producer(const json::value& producer) {
  const auto named = [&](const char* key) {
    const std::string name = text_at(producer, key);
    return name.empty() ? "unnamed" : name;
  };
  const json::value* connected = at_path(producer, "connected");
  return fmt::format("{}, {} (process {:.0f}){}", named("name"), named("client"),
                     number_or_0(producer, "pid"),
                     connected != nullptr && *connected == false ? ", gone" : "");
}

TopTable producer_table(const json::value& live) {
  TopTable table;
  table.columns = {{"  producer", true, 0},  {"accepted", false, 1},      {"bytes", false, 5},
                   {"last one", false, 0},   {"waits for", true, 0},      {"claimed", false, 3},
                   {"in no step", false, 4}, {"credit in use", false, 2}, {"too stale", false, 6},
                   {"abandoned", false, 7}};
  for (const auto& producer : items_at(live, "producers")) {
    const std::string waits = text_at(producer, "waits_for");
    const double credit = number_or_0(producer, "area_bytes");
    const std::string used = memory_text(number_or_0(producer, "held_bytes"));
    table.rows.push_back(
        {{"  " + name_of_producer(producer)},
         {count_at(producer, "accepted")},
         {memory_text(number_or_0(producer, "accepted_bytes"))},
         {time_at(producer, "pushed_seconds_ago")},
         {waits.empty() ? std::string(kNone) : waits, waits.empty() ? Tone::plain : Tone::warning},
         {count_at(producer, "claimed")},
         {count_at(producer, "waiting")},
         {credit > 0 ? fmt::format("{} of {}", used, memory_text(credit)) : used},
         {count_at(producer, "dropped_stale")},
         {count_at(producer, "abandoned")}});
  }
  return table;
}

std::vector<TopLine> producers_of(const json::value& live, std::size_t width) {
  const std::size_t shown = items_at(live, "producers").size();
  const double known = number_or_0(live, "producers_known");
  std::string title = fmt::format("Producers: {} connected, {} known by name",
                                  count_at(live, "producers_connected"), whole_text(known));
  if (static_cast<double>(shown) < known) {
    title += fmt::format("; these {} have been silent for longest", shown);
  }
  std::vector<TopLine> lines{{}, line(std::move(title), Tone::strong)};
  if (shown != 0) append(lines, producer_table(live).lines(width));
  return lines;
}

}  // namespace

bool is_live(const json::value& feed) {
  const json::value* const live = at_path(feed, "live");
  return live != nullptr && live->is_object();
}

std::vector<TopLine> live_lines(const json::value& feed, PageWidth width) {
  if (!is_live(feed)) return {};
  const json::value& live = *at_path(feed, "live");
  const std::string host = text_at(live, "host");  // the worst of several
  std::vector<TopLine> lines{
      {}, line(host.empty() ? "Pool and steps" : "Pool and steps of " + host, Tone::strong)};
  append(lines, figure_lines(steps_of(live), width.text));
  append(lines, figure_lines(pool_of(live), width.text));
  const auto rows = staleness_of(live);
  if (!rows.empty()) {
    append(lines, {{}, line("Rows of steps by staleness, in versions", Tone::strong)});
    append(lines, figure_lines(rows, width.text));
  }
  append(lines, producers_of(live, width.tables));
  return lines;
}

}  // namespace batchwright
