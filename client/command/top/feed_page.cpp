#include "client/command/top/feed_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "client/command/top/client_table.h"
#include "client/command/top/figures.h"
#include "client/command/top/hosts.h"
#include "client/command/top/live_page.h"
#include "client/command/top/overview.h"
#include "client/command/top/table.h"

namespace batchwright {
namespace {

namespace json = boost::json;

using Words = std::pair<std::string_view, std::string_view>;

// The words of the dashboard (daemon/stats/dashboard/feed.js).
constexpr std::array<Words, 13> kVerdicts{{
    {"trainer-bound", "the daemon waits for the trainer"},
    {"storage-bound", "the trainer waits for the daemon, which waits for the disk"},
    {"mixed", "both wait: the trainer for the daemon, and the daemon, longer, for the trainer"},
    {"blocked", "the trainer waits for the daemon, whose threads work for another feed"},
    {"producer-bound", "the trainer waits for steps, and the pool has too few sequences for one"},
    {"pool-bound", "producers wait for room in the pool"},
    {"staleness-bound", "producers wait for a newer version, or push what is too stale"},
    {"slot-bound", "the trainer waits for the daemon, whose slots are all with clients"},
    {"processor-bound", "the trainer waits for the daemon, which waits for a processor"},
    {"assembly-bound", "the trainer waits for the daemon, whose assembly threads are all busy"},
    {"feature-bound", "the trainer waits for the daemon, whose threads compute its recipe"},
    {"idle", "neither waits"},
    {"failed", "nothing is served"},
}};
constexpr std::array<Words, 5> kSlots{{{"held", "held by clients"},
                                       {"ahead", "ready for a client to come"},
                                       {"kept", "had by all, kept until needed"},
                                       {"filling", "being filled"},
                                       {"free", "free"}}};
constexpr std::array<std::string_view, 7> kMakeSteps{
    "decode", "resample", "reverberation", "noise", "telephone", "features", "frames"};
constexpr std::array<Words, 5> kStages{{{"readahead", "read ahead"},
                                        {"fetch", "fetch pages"},
                                        {"assemble", "assemble"},
                                        {"wait_for_slot", "wait for a slot"},
                                        {"deliver", "deliver"}}};

/// The verdict and what it means, in the next line where that is too long for one.
std::vector<TopLine> verdict_lines(const json::value& feed, std::size_t width) {
  const std::string verdict = text_at(feed, "verdict.text");
  const auto found = std::find_if(kVerdicts.begin(), kVerdicts.end(),
                                  [&](const Words& each) { return each.first == verdict; });
  // A verdict of a newer daemon is shown without words, rather than with wrong ones.
  std::string words(found == kVerdicts.end() ? "" : found->second);
  // Until then there are no figures for a verdict.
  if (text_at(feed, "state") == "starting") words = "no batch is there yet";
  TopLine first{
      {{text_at(feed, "name") + "  ", Tone::strong}, {verdict, tone_of_verdict(verdict)}}};
  std::vector<TopLine> lines;
  // 2: the blanks between verdict and words.
  if (first.columns() + 2 + columns_of(words) > width) {
    lines = wrapped(words, width);
  } else {
    first.pieces.push_back({"  " + words, Tone::plain});
  }
  lines.insert(lines.begin(), std::move(first));
  return lines;
}

std::string dataset_of(const json::value& feed, std::string_view between) {
  std::string paths;
  for (const auto& shard : items_at(feed, "dataset")) {
    paths += (paths.empty() ? "" : std::string(between)) + text_at(shard, "");
  }
  return paths;
}

/// The reason of a failure goes before the figures behind the verdict.
std::string why_of(const json::value& feed) {
  const std::string reason = text_at(feed, "reason");
  return reason.empty() ? text_at(feed, "verdict.why") : reason;
}

/// Empty where nothing is to do.
std::string what_to_do(const json::value& feed) {
  if (text_at(feed, "state") != "failed") {
    if (!text_at(feed, "blocked_by").empty()) {
      return "Remedy: nothing is lost, and the feed goes on once its file system answers. Look at "
             "what serves that file system.";
    }
    const json::value* stale = at_path(feed, "dataset_stale");
    if (stale == nullptr || *stale != true) return {};
    return "Remedy: `systemctl reload batchwrightd` opens the feed anew, with what the path leads "
           "to now.";
  }
  const json::value* retried = at_path(feed, "retried");
  const char* remedy =
      retried != nullptr && *retried == true
          ? "mend the cause; the daemon tries the feed again by itself"
          : "once the cause is mended, `systemctl reload batchwrightd` opens the feed anew";
  if (is_live(feed)) return fmt::format("Remedy: {}.", remedy);
  return fmt::format("Remedy: {}. Damage of the dataset is named by `batchwright verify {}`.",
                     remedy, dataset_of(feed, " "));
}

/// Batches of its queue that workers began and did not do; empty where there are none.
std::string undone_text(const json::value& feed) {
  constexpr std::size_t kFewUndone = 8;
  std::string text;
  const double aside = number_or_0(feed, "counters.queue_set_aside");
  if (aside > 0) {
    text =
        fmt::format("{} {} set aside since the daemon started (queue_attempts).", whole_text(aside),
                    aside == 1 ? "batch of the queue was" : "batches of the queue were");
  }
  const json::array& undone = items_at(feed, "undone");
  if (undone.empty()) return text;
  text += fmt::format("{}Epoch {:.0f} of the queue:", text.empty() ? "" : " ",
                      number_or_0(undone.front(), "epoch"));
  for (std::size_t i = 0; i < std::min(undone.size(), kFewUndone); ++i) {
    const double times = number_or_0(undone[i], "times");
    const json::value* is_aside = at_path(undone[i], "set_aside");
    text += fmt::format("{} batch {:.0f}, begun {:.0f} {} and not done{}", i == 0 ? "" : ";",
                        number_or_0(undone[i], "index"), times, times == 1 ? "time" : "times",
                        is_aside != nullptr && *is_aside == true ? " (set aside)" : "");
  }
  if (undone.size() > kFewUndone) {
    text +=
        fmt::format("; and {} more", whole_text(static_cast<double>(undone.size() - kFewUndone)));
  }
  return text + ".";
}

std::vector<std::string> figures_of(const json::value& feed) {
  const auto rate = [&](const char* key) {
    return number_or_0(feed, std::string("rates.") + key + "_per_second");
  };
  // An en dash as in the tables, where share_text() alone would write a hyphen.
  const auto share = [](std::optional<double> value) {
    return value ? share_text(value) : std::string(kNone);
  };
  // What the plan of the earliest epoch that is served promises.
  const json::array& plans = items_at(feed, "plans");
  const auto planned = plans.empty() ? std::nullopt : number_at(plans.front(), "padded_share");
  std::vector<std::string> figures{
      fmt::format("batches {}", rate_text(rate("batches"))),
      fmt::format("bytes {}/s", memory_text(rate("bytes"))),
      fmt::format("frames {}", rate_text(rate("frames"))),
      fmt::format("sequences {}", rate_text(rate("sequences"))),
      fmt::format("padding now {}", share(number_at(feed, "rates.padded_share")))};
  if (!is_live(feed)) {
    figures.push_back(fmt::format("padding planned {}", share(planned)));
    figures.push_back(
        fmt::format("last plan took {}", seconds_text(number_at(feed, "plan_seconds"))));
  }
  figures.push_back(
      fmt::format("memory of its batches {}", memory_text(number_or_0(feed, "arena_bytes"))));
  figures.push_back(fmt::format("page-locked {}", text_at(feed, "pinned")));
  return figures;
}

std::vector<TopLine> clients_of(const json::value& feed, const TopMemory& memory,
                                std::size_t width) {
  std::vector<TopLine> lines{{}, line("Clients", Tone::strong)};
  if (items_at(feed, "subscribers").empty()) {
    lines.push_back(line("  No client has subscribed.", Tone::faint));
  } else {
    append(lines, client_table(feed, memory).lines(width));
  }
  return lines;
}

std::vector<TopLine> slots_of(const json::value& feed, std::size_t width) {
  std::vector<std::string> figures;
  for (const auto& [state, words] : kSlots) {
    const double count = number_or_0(feed, fmt::format("slots.{}", state));
    figures.push_back(fmt::format("{} {}", whole_text(count), words));
  }
  std::vector<TopLine> lines{{}, line("Slots", Tone::strong)};
  append(lines, figure_lines(figures, width));
  return lines;
}

std::vector<TopLine> stages_of(const json::value& feed, std::size_t width) {
  TopTable table;
  table.columns = {{"  stage", true}, {"batches"}, {"median"}, {"99 % took less"}};
  for (const auto& [stage, words] : kStages) {
    const std::string path = fmt::format("stages.{}.", stage);
    const auto time = [&](const char* key) {
      const auto seconds = number_at(feed, path + key);
      return Piece{seconds ? seconds_text(seconds) : std::string(kNone)};
    };
    table.rows.push_back({{"  " + std::string(words)},
                          {whole_text(number_or_0(feed, path + "count"))},
                          time("p50_seconds"),
                          time("p99_seconds")});
  }
  std::vector<TopLine> lines{{}, line("Times of a batch", Tone::strong)};
  append(lines, table.lines(width));
  return lines;
}

/// Where the time of a recipe goes; nothing for a feed without one.
std::vector<TopLine> making_of(const json::value& feed, std::size_t width) {
  std::vector<std::string> figures;
  double sum = 0.0;
  for (const std::string_view step : kMakeSteps) {
    const double seconds = number_or_0(feed, fmt::format("making.steps.{}", step));
    sum += seconds;
    if (seconds > 0.0) figures.push_back(fmt::format("{} {}", step, seconds_text(seconds)));
  }
  if (sum == 0.0) return {};
  const auto factor = number_at(feed, "making.real_time_factor");
  if (factor) figures.push_back(fmt::format("{:.0f} times real time", *factor));
  std::vector<TopLine> lines{{}, line("Making rows", Tone::strong)};
  append(lines, figure_lines(figures, width));
  return lines;
}

}  // namespace

std::vector<TopLine> figure_lines(const std::vector<std::string>& figures, std::size_t columns,
                                  Tone tone) {
  std::vector<TopLine> lines;
  std::string text;
  for (const std::string& figure : figures) {
    if (!text.empty() && columns_of(text) + 2 + columns_of(figure) > columns) {
      lines.push_back(line(std::exchange(text, {}), tone));
    }
    text += "  " + figure;
  }
  if (!text.empty()) lines.push_back(line(std::move(text), tone));
  return lines;
}

std::vector<TopLine> feed_page(const json::value& feed, const TopMemory& memory, PageWidth width) {
  std::vector<TopLine> lines = verdict_lines(feed, width.text);
  append(lines, wrapped(why_of(feed), width.text));
  const bool failed = text_at(feed, "state") == "failed";
  append(lines, wrapped(what_to_do(feed), width.text));
  append(lines, wrapped(undone_text(feed), width.text, Tone::warning));
  // What a failed feed has served is past: clients, slots and times would mislead.
  if (!failed) append(lines, figure_lines(figures_of(feed), width.text));
  const std::string place = is_live(feed) ? "a live feed: its sequences are pushed by producers"
                                          : fmt::format("dataset {}", dataset_of(feed, ", "));
  append(lines, wrapped(place, width.text, Tone::faint));
  append(lines, host_lines(feed, width.tables));
  if (failed) return lines;
  append(lines, clients_of(feed, memory, width.tables));
  append(lines, live_lines(feed, width));
  append(lines, slots_of(feed, width.text));
  append(lines, stages_of(feed, width.tables));
  append(lines, making_of(feed, width.text));
  return lines;
}

}  // namespace batchwright
