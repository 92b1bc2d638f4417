#include "client/command/top/hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "client/command/top/figures.h"
#include "client/command/top/overview.h"
#include "client/command/top/table.h"

namespace batchwright {
namespace {

namespace json = boost::json;

/// How the figures of two hosts become one.
enum class Joined : std::uint8_t { sum, largest, smallest };

struct JoinedFigure {
  std::string_view key;
  Joined how;
};
constexpr std::array<JoinedFigure, 6> kOfPage{{{"sessions", Joined::sum},
                                               {"resident_bytes", Joined::sum},
                                               {"mapped_file_bytes", Joined::sum},
                                               {"arena_bytes", Joined::sum},
                                               {"memory_ceiling_bytes", Joined::sum},
                                               {"uptime_seconds", Joined::smallest}}};
constexpr std::array<JoinedFigure, 2> kOfFeed{
    {{"arena_bytes", Joined::sum}, {"plan_seconds", Joined::largest}}};
constexpr std::array<JoinedFigure, 4> kOfStage{{{"count", Joined::sum},
                                                {"seconds", Joined::sum},
                                                {"p50_seconds", Joined::largest},
                                                {"p99_seconds", Joined::largest}}};
constexpr std::array<std::string_view, 4> kRates{"batches_per_second", "bytes_per_second",
                                                 "frames_per_second", "sequences_per_second"};

double join(double a, double b, Joined how) {
  switch (how) {
    case Joined::sum: return a + b;
    case Joined::largest: return std::max(a, b);
    case Joined::smallest: break;
  }
  return std::min(a, b);
}

std::optional<double> figure_of(const json::object& of, std::string_view key) {
  const json::value* const found = of.if_contains(key);
  return found == nullptr ? std::nullopt : number_at(*found, "");
}

/// A figure that only one side has is that side's.
void join_figure(json::object& into, const json::value& from, std::string_view key, Joined how) {
  const auto theirs = number_at(from, key);
  if (!theirs) return;
  const auto ours = figure_of(into, key);
  into[key] = ours ? join(*ours, *theirs, how) : *theirs;
}

template <std::size_t count>
void join_figures(json::object& into, const json::value& from,
                  const std::array<JoinedFigure, count>& figures) {
  for (const auto& [key, how] : figures) join_figure(into, from, key, how);
}

/// The object below `key`, made where there is none.
json::object& object_at(json::object& of, std::string_view key) {
  json::value& found = of[key];
  return found.is_object() ? found.get_object() : found.emplace_object();
}

/// Every number below an object of numbers.
void add_all(json::object& into, const json::value* from) {
  if (from == nullptr || !from->is_object()) return;
  for (const auto& [key, value] : from->get_object()) join_figure(into, *from, key, Joined::sum);
}

/// Weighted by the frames, as one daemon's is.
void join_padding(json::object& into, const json::value& from) {
  const auto theirs = number_at(from, "padded_share");
  if (!theirs) return;
  const auto ours = figure_of(into, "padded_share");
  const double weight = number_or_0(from, "frames_per_second");
  const double had = figure_of(into, "frames_per_second").value_or(0.0);
  into["padded_share"] =
      ours && had + weight > 0 ? (*ours * had + *theirs * weight) / (had + weight) : *theirs;
}

void join_rates(json::object& into, const json::value* from) {
  if (from == nullptr) return;
  join_padding(into, *from);
  for (const std::string_view key : kRates) join_figure(into, *from, key, Joined::sum);
}

void join_stages(json::object& into, const json::value* from) {
  if (from == nullptr || !from->is_object()) return;
  for (const auto& [stage, figures] : from->get_object()) {
    join_figures(object_at(into, stage), figures, kOfStage);
  }
}

void join_making(json::object& into, const json::value* from) {
  if (from == nullptr || !from->is_object()) return;
  add_all(object_at(into, "steps"), at_path(*from, "steps"));
  join_figure(into, *from, "real_time_factor", Joined::smallest);
}

/// What rows are sorted by, as far as one feed of one daemon tells it.
int severity_of(const json::value& feed) {
  FeedRow row;
  row.state = text_at(feed, "state");
  row.verdict = text_at(feed, "verdict.text");
  return severity_of(row);
}

json::object row_of(const std::string& host, const json::value& feed) {
  return {{"host", host},
          {"state", text_at(feed, "state")},
          {"verdict", text_at(feed, "verdict.text")},
          {"why", text_at(feed, "reason").empty() ? text_at(feed, "verdict.why")
                                                  : text_at(feed, "reason")},
          {"batches_per_second", number_or_0(feed, "rates.batches_per_second")},
          {"bytes_per_second", number_or_0(feed, "rates.bytes_per_second")},
          {"clients", items_at(feed, "subscribers").size()}};
}

/// State, verdict and reason of the worst host so far, and of a live feed how it stands there.
void take_verdict(json::object& into, const std::string& host, const json::value& feed) {
  const auto with_host = [&host](const std::string& text) {
    return text.empty() ? text : fmt::format("{}: {}", host, text);
  };
  into["state"] = text_at(feed, "state");
  into["reason"] = with_host(text_at(feed, "reason"));
  into["verdict"] = {{"text", text_at(feed, "verdict.text")},
                     {"why", with_host(text_at(feed, "verdict.why"))}};
  const json::value* const live = at_path(feed, "live");
  if (live == nullptr || !live->is_object()) return;
  into["live"] = *live;
  into["live"].as_object()["host"] = host;
}

json::array& array_at(json::object& of, std::string_view key) {
  json::value& found = of[key];
  return found.is_array() ? found.get_array() : found.emplace_array();
}

/// One host's feed into that of all.
class JoinedFeed {
 public:
  void add(const std::string& host, double uptime, const json::value& feed) {
    if (all_.empty()) {
      for (const char* key : {"name", "dataset", "plans", "pinned", "sequences", "world"}) {
        if (const json::value* value = at_path(feed, key)) all_[key] = *value;
      }
    }
    if (severity_of(feed) > worst_) {
      worst_ = severity_of(feed);
      take_verdict(all_, host, feed);
    }
    join_figures(all_, feed, kOfFeed);
    join_rates(object_at(all_, "rates"), at_path(feed, "rates"));
    add_all(object_at(all_, "counters"), at_path(feed, "counters"));
    add_all(object_at(all_, "slots"), at_path(feed, "slots"));
    join_stages(object_at(all_, "stages"), at_path(feed, "stages"));
    join_making(object_at(all_, "making"), at_path(feed, "making"));
    array_at(all_, "hosts").push_back(row_of(host, feed));
    for (const auto& client : items_at(feed, "subscribers")) add_client(host, uptime, client);
    array_at(all_, "subscribers");  // there is one where nothing has subscribed, too
  }
  json::object take() { return std::move(all_); }

 private:
  void add_client(const std::string& host, double uptime, const json::value& client) {
    if (!client.is_object()) return;
    json::object with_host = client.get_object();
    with_host["host"] = host;
    // Its sums are compared by the clock of its own daemon.
    with_host["uptime_seconds"] = uptime;
    array_at(all_, "subscribers").emplace_back(std::move(with_host));
  }

  json::object all_;
  int worst_ = -1;
};

/// The machine's name; the address where several daemons have one machine.
std::string label_of(const HostPage& page, const std::vector<HostPage>& pages) {
  const std::string host = text_at(page.stats, "host");
  const auto same = std::count_if(pages.begin(), pages.end(), [&host](const HostPage& other) {
    return text_at(other.stats, "host") == host;
  });
  return host.empty() || same > 1 ? printable_ascii(page.address) : host;
}

void add_process(json::object& all, const std::string& host, const json::value& stats) {
  join_figures(all, stats, kOfPage);
  const std::string version = text_at(stats, "version");
  const json::value* const before = all.if_contains("version");
  const std::string versions = before == nullptr ? "" : text_at(*before, "");
  if (versions.find(version) == versions.npos) {
    all["version"] = versions.empty() ? version : versions + " and " + version;
  }
  const std::string refusal = text_at(stats, "reload.last_refusal");
  if (refusal.empty() || all.contains("reload")) return;
  all["reload"] = {{"last_refusal", fmt::format("{}: {}", host, refusal)},
                   {"last_seconds_ago", number_or_0(stats, "reload.last_seconds_ago")}};
}

}  // namespace

json::value merged(const std::vector<HostPage>& pages) {
  if (pages.size() == 1) return pages.front().stats;
  json::object all;
  json::array missing;
  std::vector<std::string> names;  // of feeds, in the order in which they come
  std::map<std::string, JoinedFeed> feeds;
  std::size_t answers = 0;
  for (const HostPage& page : pages) {
    if (page.stats.is_null()) {
      missing.emplace_back(fmt::format("{}: {}", page.address, page.trouble));
      continue;
    }
    ++answers;
    const std::string host = label_of(page, pages);
    add_process(all, host, page.stats);
    for (const auto& feed : items_at(page.stats, "feeds")) {
      if (!feed.is_object()) continue;
      const std::string name = text_at(feed, "name");
      if (!feeds.contains(name)) names.push_back(name);
      feeds[name].add(host, number_or_0(page.stats, "uptime_seconds"), feed);
    }
  }
  all["host"] = fmt::format("{} of {} daemons answer", answers, pages.size());
  all["missing"] = std::move(missing);
  json::array& list = array_at(all, "feeds");
  for (const std::string& name : names) list.emplace_back(feeds[name].take());
  return all;
}

std::vector<TopLine> missing_lines(const json::value& stats, std::size_t columns) {
  std::vector<TopLine> lines;
  for (const auto& missing : items_at(stats, "missing")) {
    append(lines,
           wrapped(fmt::format("no answer of {}", text_at(missing, "")), columns, Tone::bad));
  }
  return lines;
}

std::vector<TopLine> host_lines(const json::value& feed, std::size_t columns) {
  if (items_at(feed, "hosts").empty()) return {};
  TopTable table;
  table.columns = {{"  host", true, 0},     {"state", true, 2},    {"verdict", true, 0},
                   {"batches/s", false, 0}, {"bytes/s", false, 1}, {"clients", false, 0},
                   {"why", true, 3}};
  for (const auto& host : items_at(feed, "hosts")) {
    const std::string verdict = text_at(host, "verdict");
    table.rows.push_back({{"  " + text_at(host, "host")},
                          {text_at(host, "state")},
                          {verdict, tone_of_verdict(verdict)},
                          {rate_text(number_or_0(host, "batches_per_second"))},
                          {memory_text(number_or_0(host, "bytes_per_second")) + "/s"},
                          {whole_text(number_or_0(host, "clients"))},
                          {text_at(host, "why")}});
  }
  std::vector<TopLine> lines{{}, line("Hosts", Tone::strong)};
  append(lines, table.lines(columns));
  return lines;
}

}  // namespace batchwright
