#include "daemon/stats/metrics/metric_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace batchwright {
namespace {

using Page = MetricsPage;
using Daemon = const StatsSource&;
using Feed = const FeedStatus&;
using Client = const Trainer&;
using Disk = const ReadDiskStats&;
using File = const DiskStats&;

Number flag(bool value) { return std::uint64_t{value}; }

const StageTimes& times_of(Feed feed) {
  static const StageTimes kNone;  // of a feed that is not open yet
  return feed.stages == nullptr ? kNone : *feed.stages;
}

Number longest_turn(Daemon daemon) {
  if (daemon.events == nullptr) return 0.0;
  using Time = LoopTurns::Time;
  return daemon.events->turns()
      .longest(daemon.started + std::chrono::duration_cast<Time::duration>(daemon.uptime))
      .count();
}

void write_build(Page& page, Daemon daemon) {
  page.sample({{"version", daemon.version},
               {"compiler", daemon.build.compiler},
               {"cuda", daemon.build.cuda ? "yes" : "no"}},
              1);
}

void write_page_faults(Page& page, Daemon daemon) {
  page.sample({{"kind", "minor"}}, daemon.process.minor_page_faults);
  page.sample({{"kind", "major"}}, daemon.process.major_page_faults);
}

void write_reloads(Page& page, Daemon daemon) {
  page.sample({{"result", "applied"}}, daemon.reload.applied);
  page.sample({{"result", "refused"}}, daemon.reload.refused);
}

/// Every event has its line, at 0 too: rate() needs a value before the first one.
void write_events(Page& page, Daemon daemon) {
  for (const EventRow& row : kEventRows) {
    page.sample({{"event", row.name}},
                daemon.events == nullptr ? 0 : daemon.events->get(row.event));
  }
}

/// A line for each batch, and for at most so many: labels are not free.
void write_undone(Page& page, Daemon daemon) {
  constexpr std::size_t kMostLines = 16;
  for (Feed feed : daemon.feeds) {
    for (std::size_t i = 0; i < std::min(feed.undone.size(), kMostLines); ++i) {
      const UndoneStats& batch = feed.undone[i];
      page.sample({{"feed", feed.name},
                   {"batch", std::to_string(batch.index)},
                   {"set_aside", batch.set_aside ? "yes" : "no"}},
                  batch.times);
    }
  }
}

void write_slots(Page& page, Daemon daemon) {
  for (Feed feed : daemon.feeds) {
    const SlotStats& slots = feed.slots;
    for (const auto& [state, count] :
         {std::pair("free", slots.free), std::pair("filling", slots.filling),
          std::pair("ahead", slots.ahead), std::pair("kept", slots.kept()),
          std::pair("held", slots.held)}) {
      page.sample({{"feed", feed.name}, {"state", state}}, count);
    }
  }
}

void write_padded_share(Page& page, Daemon daemon) {
  for (Feed feed : daemon.feeds) {
    // None is not 0 %: an alert compares with it.
    if (feed.plans.empty()) continue;
    const PlanStats& plan = feed.plans.front();
    const auto share = padded_share(plan.frames, plan.padded_frames);
    if (share) page.sample({{"feed", feed.name}}, *share);
  }
}

void write_histogram(Page& page, const std::string& labels, const Histogram& times) {
  std::uint64_t sum = 0;
  // Prometheus' buckets are cumulative, the histogram's ranges are not.
  for (std::size_t i = 0; i < Histogram::kBounds; ++i) {
    sum += times.in_range(i);
    page.part("_bucket", fmt::format("{},le=\"{}\"", labels, Histogram::bound_seconds(i)), sum);
  }
  sum += times.in_range(Histogram::kBounds);
  page.part("_bucket", labels + ",le=\"+Inf\"", sum);
  page.part("_sum", labels, times.seconds());
  // The same sum once more: counting again might see a duration that was added since.
  page.part("_count", labels, sum);
}

void write_stages(Page& page, Daemon daemon) {
  for (Feed feed : daemon.feeds) {
    for (std::size_t i = 0; i < kStages; ++i) {
      const auto stage = static_cast<Stage>(i);
      write_histogram(page, Page::prepare({{"feed", feed.name}, {"stage", describe(stage).name}}),
                      times_of(feed).of(stage));
    }
  }
}

void write_making(Page& page, Daemon daemon) {
  for (Feed feed : daemon.feeds) {
    for (std::size_t i = 0; i < kMakeSteps; ++i) {
      const auto step = static_cast<MakeStep>(i);
      page.sample({{"feed", feed.name}, {"step", describe(step).name}},
                  times_of(feed).seconds_in(step));
    }
  }
}

template <class Choice, std::size_t kCount>
std::array<std::string_view, kCount> names_of(const std::array<Choice, kCount>& all) {
  std::array<std::string_view, kCount> names;
  std::transform(all.begin(), all.end(), names.begin(), [](Choice each) { return name_of(each); });
  return names;
}

const auto kStateNames = names_of(kFeedStates);
const auto kBoundNames = names_of(kBounds);
constexpr std::array<std::string_view, 3> kPinNames{"none", "locked", "cuda"};
constexpr std::array<std::string_view, 3> kPageNames{"small", "transparent", "reserved"};

// clang-format off: one row is one metric
const std::vector<MetricRow> kOfDaemon{
    {"build_info", "gauge", "What the daemon was built from; always 1.",
     MetricLines{"version, compiler, cuda", write_build}},
    {"process_start_time_seconds", "gauge", "When the daemon started, in seconds since 1970.",
     [](Daemon of) -> Number { return of.started_unix_seconds; }},
    {"process_cpu_seconds_total", "counter", "Processor time of all threads.",
     [](Daemon of) -> Number { return of.process.cpu_seconds; }, "cpu_seconds"},
    {"process_resident_memory_bytes", "gauge", "Memory in use.",
     [](Daemon of) -> Number { return of.process.resident_bytes; }, "resident_bytes"},
    {"process_virtual_memory_bytes", "gauge",
     "Addresses in use; maps of datasets are most of them.",
     [](Daemon of) -> Number { return of.process.virtual_bytes; }},
    {"process_open_fds", "gauge", "File descriptors in use.",
     [](Daemon of) -> Number { return of.process.open_descriptors; }, "open_descriptors"},
    {"process_max_fds", "gauge", "File descriptors that the process may have.",
     [](Daemon of) -> Number { return of.process.most_descriptors; }},
    {"memory_ceiling_bytes", "gauge", "Most memory that all arenas together may take.",
     [](Daemon of) -> Number { return of.memory_ceiling_bytes; }, "memory_ceiling_bytes"},
    {"page_faults_total", "counter",
     "Pages that were not mapped: in memory (minor) or read (major).",
     MetricLines{"kind", write_page_faults}},
    {"log_lines_dropped_total", "counter",
     "Lines of the log that standard error did not take: nobody read it.",
     [](Daemon of) -> Number { return of.log_lines_dropped; }, "log_lines_dropped"},
    {"loop_longest_turn_seconds", "gauge",
     "The longest turn of the event loop in the last minute, or in the one before it: a scrape at "
     "least once a minute misses none. While a turn lasts, no client is served.",
     longest_turn, "loop_longest_turn_seconds"},
    {"ready", "gauge", "Whether new clients are served by each feed, as at /readyz.",
     [](Daemon of) { return flag(of.not_ready.empty()); }},
    {"sessions", "gauge", "Connected clients.",
     [](Daemon of) -> Number { return of.sessions.size(); }, "sessions"},
    {"clients_refused_total", "counter", "Clients that were refused.",
     [](Daemon of) -> Number { return clients_refused(of); }, "clients_refused"},
    {"reloads_total", "counter", "Changes of the configuration while the daemon ran.",
     MetricLines{"result", write_reloads}},
    {"config_last_reload_successful", "gauge",
     "Whether the latest configuration was taken: at the start, or by a reload.",
     [](Daemon of) { return flag(!of.reload.last_refusal); }},
    {"config_last_reload_success_timestamp_seconds", "gauge",
     "When the configuration that is served was taken, in seconds since 1970.",
     [](Daemon of) -> Number { return of.reload.taken_unix_seconds; }},
    {"http_connections", "gauge", "Open connections to the statistics server.",
     [](Daemon of) -> Number { return of.http.connections; }, "http.connections"},
    {"http_requests_total", "counter", "Requests that the statistics server answered with a page.",
     [](Daemon of) -> Number { return of.http.requests; }, "http.requests"},
    {"http_refused_total", "counter", "Requests that it refused, and connections that sent none.",
     [](Daemon of) -> Number { return of.http.refused; }, "http.refused"},
    {"events_total", "counter", "Events, by their name in the table of events.",
     MetricLines{"event", write_events}},
    {"disk_free_bytes", "gauge", "Room left on the disk of a feed's journal, ledger or record.",
     [](File of) -> Number { return of.free_bytes; }, "free_bytes"},
    {"disk_size_bytes", "gauge", "Size of that disk.",
     [](File of) -> Number { return of.size_bytes; }, "size_bytes"},
    {"readahead_ahead_bytes", "gauge", "Brought into memory for batches not assembled yet.",
     [](Daemon of) -> Number { return of.readahead.ahead_bytes; }, "readahead.ahead_bytes"},
    {"readahead_kept_bytes", "gauge",
     "Left in memory behind the plan, where the datasets are larger than it.",
     [](Daemon of) -> Number { return of.readahead.kept_bytes; }, "readahead.kept_bytes"},
    {"memory_pressure_share", "gauge",
     "Share of the last 10 s for which programs of this control group waited for memory.",
     [](Daemon of) -> Number { return of.readahead.pressure_share; }, "readahead.pressure_share"},
    {"readahead_under_way_bytes", "gauge", "Asked for of a dataset's disk, and not there yet.",
     [](Disk of) -> Number { return of.under_way_bytes; }, "under_way_bytes"},
    {"readahead_window_bytes", "gauge", "Most that is under way at a time.",
     [](Disk of) -> Number { return of.window_bytes; }, "window_bytes"},
    {"readahead_disk_bytes_per_second", "gauge", "What the disk delivered at best of late.",
     [](Disk of) -> Number { return of.bytes_per_second; }, "bytes_per_second"},
    {"readahead_disk_latency_seconds", "gauge", "The shortest read of late.",
     [](Disk of) -> Number { return of.latency_seconds; }, "latency_seconds"}};

const std::vector<MetricRow> kOfFeeds{
    {"feed_state", "gauge", "1 for the state that the feed is in.",
     FeedChoice{"state", kStateNames,
                [](Feed of) -> std::string_view { return name_of(of.state); }}},
    {"feed_bound", "gauge", "1 for what the feed's throughput depends on, by the verdict.",
     FeedChoice{"bound", kBoundNames,
                [](Feed of) -> std::string_view { return name_of(of.verdict.bound); }}},
    {"dataset_locked", "gauge",
     "Whether writers spare the pages that the feed reads: by a reader slot in lock.mdb, or "
     "because the file system is read-only.",
     [](Feed of) { return flag(of.dataset_lock != "none"); }},
    {"dataset_stale", "gauge",
     "Whether the dataset's path no longer leads to the files that the feed reads: it was "
     "renamed, replaced or removed.",
     [](Feed of) { return flag(of.dataset_stale); }},
    {"blocked_seconds", "gauge",
     "How long a file system has not answered on which the feed waits; 0: all answer.",
     [](Feed of) -> Number { return of.blocked_seconds; }, "blocked_seconds"},
    {"pinned", "gauge", "1 for how the feed's arena is kept in memory.",
     FeedChoice{"state", kPinNames, [](Feed of) -> std::string_view { return of.pinned; }}},
    {"arena_pages", "gauge", "1 for the kind of pages that the feed's arena lies in.",
     FeedChoice{"kind", kPageNames, [](Feed of) -> std::string_view { return of.pages; }}},
    {"queue_batch_undone", "gauge",
     "How often a batch of the queue's epoch was begun and not done, from 3 on or when it is "
     "set aside; at most 16 batches a feed.",
     MetricLines{"feed, batch, set_aside", write_undone}},
    {"slots", "gauge",
     "Slots of the arena by state. No client holds the batch of a slot that is ahead (a client "
     "will get it) or kept (every client has had it).",
     MetricLines{"feed, state", write_slots}},
    {"arena_bytes", "gauge", "Memory of all slots.",
     [](Feed of) -> Number { return of.arena_bytes; }, "arena_bytes"},
    {"making_bytes", "gauge", "Memory that making rows takes beside the slots.",
     [](Feed of) -> Number { return of.making_bytes; }, "making_bytes"},
    {"dataset_sequences", "gauge", "Sequences of the dataset.",
     [](Feed of) -> Number { return of.sequences; }, "sequences"},
    {"plan_padded_share", "gauge",
     "Share of padding in the plan of the first epoch that is served, or was served last.",
     MetricLines{"feed", write_padded_share}},
    {"plan_seconds", "gauge", "Time that planning the latest epoch took.",
     [](Feed of) -> Number { return of.plan_seconds; }, "plan_seconds"},
    {"stage_seconds", "histogram",
     "Time of the stages of a batch's way; bounds double from 1 us to 8.4 s.",
     MetricLines{"feed, stage, le", write_stages}},
    {"make_seconds_total", "counter", "Time of assembling in each step of making rows by a recipe.",
     MetricLines{"feed, step", write_making}},
    {"sound_seconds_total", "counter", "Sound that became rows, as long as it was stored.",
     [](Feed of) -> Number { return times_of(of).sound_seconds(); }},
    {"storage_wait_seconds_total", "counter",
     "Time of assembling spent waiting for pages to be in memory.",
     [](Feed of) -> Number { return times_of(of).storage_wait_seconds(); }},
    {"processor_wait_seconds_total", "counter",
     "Time of assembling in which the thread could have gone on and no processor was free.",
     [](Feed of) -> Number { return times_of(of).processor_wait_seconds(); }}};

const std::vector<MetricRow> kOfTrainers{
    {"client_waited_seconds_total", "counter", "How long the client waited for the daemon.",
     [](Client of) -> Number { return of.waited_for_daemon; }},
    {"daemon_waited_seconds_total", "counter", "How long the daemon waited for the client.",
     [](Client of) -> Number { return of.waited_for_client; }},
    {"client_credit_batches", "gauge", "Batches that the client may still get before a release.",
     [](Client of) -> Number { return of.credit; }},
    {"client_held_batches", "gauge", "Batches that the client holds.",
     [](Client of) -> Number { return of.held; }},
    {"client_lag_batches", "gauge", "Batches behind the furthest subscriber of the feed.",
     [](Client of) -> Number { return of.lag; }},
    {"client_position_epoch", "gauge", "Epoch of the client's next batch.",
     [](Client of) -> Number { return of.position.first.value; }},
    {"client_position_step", "gauge", "Global step of the client's next batch.",
     [](Client of) -> Number { return of.position.second.value; }},
    {"client_batches_delivered_total", "counter", "Batches sent to the client.",
     [](Client of) -> Number { return of.batches; }},
    {"client_bytes_delivered_total", "counter", "Bytes of the batches sent to the client.",
     [](Client of) -> Number { return of.bytes; }}};
// clang-format on

std::vector<MetricRow> all_rows() {
  std::vector<MetricRow> rows(kOfDaemon.begin(), kOfDaemon.end());
  for (std::size_t i = 0; i < kModeCounters; ++i) {
    const auto& [name, help, sum_of] = describe(static_cast<ModeCounter>(i));
    rows.push_back(
        {fmt::format("{}_delivered_total", name), "counter", help, static_cast<ModeCounter>(i)});
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(FeedCounter::count); ++i) {
    const auto& [name, help, sum_of] = describe(static_cast<FeedCounter>(i));
    if (sum_of) continue;  // it has a line for each mode instead
    rows.push_back({fmt::format("{}_total", name), "counter", help, static_cast<FeedCounter>(i)});
  }
  rows.insert(rows.end(), kOfFeeds.begin(), kOfFeeds.end());
  rows.insert(rows.end(), live_metric_rows().begin(), live_metric_rows().end());
  rows.insert(rows.end(), kOfTrainers.begin(), kOfTrainers.end());
  return rows;
}

std::string name_labels(const MetricLines& lines) { return std::string(lines.labels); }
std::string name_labels(const FeedChoice& choice) {
  return fmt::format("feed, {} ({})", choice.label, fmt::join(choice.all, ", "));
}
std::string name_labels(ModeCounter) { return "feed, mode"; }
std::string name_labels(FeedCounter) { return "feed"; }
std::string name_labels(Number (*)(Daemon)) { return ""; }
std::string name_labels(Number (*)(Feed)) { return "feed"; }
std::string name_labels(Number (*)(const LiveStatus&)) { return "feed"; }
std::string name_labels(Number (*)(Client)) { return "feed, client, rank, pid"; }
std::string name_labels(Number (*)(Disk)) { return "device"; }
std::string name_labels(Number (*)(File)) { return "feed, file"; }

}  // namespace

const std::vector<MetricRow>& metric_rows() {
  static const std::vector<MetricRow> kRows = all_rows();
  return kRows;
}

std::string full_name(const MetricRow& row) {
  return (row.name.starts_with("process_") ? "" : "batchwright_") + row.name;
}

std::string labels_of(const MetricRow& row) {
  return std::visit([](const auto& source) { return name_labels(source); }, row.source);
}

std::string metrics_table() {
  std::string table = "| metric | type | labels | what | in `/stats` |\n";
  table += "| --- | --- | --- | --- | --- |\n";
  for (const MetricRow& row : metric_rows()) {
    const bool is_live = std::holds_alternative<Number (*)(const LiveStatus&)>(row.source);
    const auto key = fmt::format("`{}{}`", is_live ? "live." : "", row.stats);
    table += fmt::format("| `{}` | {} | {} | {} | {} |\n", row.name, row.type, labels_of(row),
                         row.help, row.stats.empty() ? "" : key);
  }
  return table;
}

}  // namespace batchwright
