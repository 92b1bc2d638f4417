#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "daemon/stats/client_metrics.h"
#include "daemon/stats/metrics_page.h"
#include "daemon/stats/report.h"

namespace batchwright {
namespace {

using Page = MetricsPage;
using Feeds = std::vector<FeedStatus>;

void process(Page& page, const StatsSource& source) {
  page.gauge("build_info", "What the daemon was built from; always 1.");
  page.sample({{"version", source.version},
               {"compiler", source.build.compiler},
               {"cuda", source.build.cuda ? "yes" : "no"}},
              1);
  // The process_ ones have Prometheus' standard names, which dashboards know.
  page.process_gauge("start_time_seconds", "When the daemon started, in seconds since 1970.");
  page.sample(source.started_unix_seconds);
  page.process_counter("cpu_seconds_total", "Processor time of all threads.");
  page.sample(source.process.cpu_seconds);
  page.process_gauge("resident_memory_bytes", "Memory in use.");
  page.sample(source.process.resident_bytes);
  page.process_gauge("virtual_memory_bytes",
                     "Addresses in use; maps of datasets are most of them.");
  page.sample(source.process.virtual_bytes);
  page.process_gauge("open_fds", "File descriptors in use.");
  page.sample(source.process.open_descriptors);
  page.process_gauge("max_fds", "File descriptors that the process may have.");
  page.sample(source.process.most_descriptors);
  page.gauge("memory_ceiling_bytes", "Most memory that all arenas together may take.");
  page.sample(source.memory_ceiling_bytes);
  page.counter("page_faults_total",
               "Pages that were not mapped: in memory (minor) or read (major).");
  page.sample({{"kind", "minor"}}, source.process.minor_page_faults);
  page.sample({{"kind", "major"}}, source.process.major_page_faults);
  page.counter("log_lines_dropped_total",
               "Lines of the log that standard error did not take: nobody read it.");
  page.sample(source.log_lines_dropped);
}

void service(Page& page, const StatsSource& source) {
  page.gauge("ready", "Whether new clients are served by each feed, as at /readyz.");
  page.sample(source.not_ready.empty() ? 1 : 0);
  page.gauge("sessions", "Connected clients.");
  page.sample(source.sessions.size());
  page.counter("clients_refused_total", "Clients that were refused.");
  page.sample(clients_refused(source));
  page.counter("reloads_total", "Changes of the configuration while the daemon ran.");
  page.sample({{"result", "applied"}}, source.reload.applied);
  page.sample({{"result", "refused"}}, source.reload.refused);
  page.gauge("config_last_reload_successful",
             "Whether the latest configuration was taken: at the start, or by a reload.");
  page.sample(source.reload.last_refusal ? 0 : 1);
  page.gauge("config_last_reload_success_timestamp_seconds",
             "When the configuration that is served was taken, in seconds since 1970.");
  page.sample(source.reload.taken_unix_seconds);
  page.gauge("http_connections", "Open connections to the statistics server.");
  page.sample(source.http.connections);
  page.counter("http_requests_total", "Requests that the statistics server answered with a page.");
  page.sample(source.http.requests);
  page.counter("http_refused_total", "Requests that it refused, and connections that sent none.");
  page.sample(source.http.refused);
  page.counter("events_total", "Events, by their name in the table of events.");
  // Every event has its line, at 0 too: rate() needs a value before the first one.
  for (const EventRow& row : kEventRows) {
    page.sample({{"event", row.name}},
                source.events == nullptr ? 0 : source.events->get(row.event));
  }
}

/// A file that could not be measured has no line: 0 bytes would be an alert.
void disks(Page& page, const StatsSource& source) {
  page.gauge("disk_free_bytes", "Room left on the disk of a feed's journal or ledger.");
  for (const DiskStats& disk : source.disks) {
    page.sample({{"feed", disk.feed}, {"file", disk.file}}, disk.free_bytes);
  }
  page.gauge("disk_size_bytes", "Size of that disk.");
  for (const DiskStats& disk : source.disks) {
    page.sample({{"feed", disk.feed}, {"file", disk.file}}, disk.size_bytes);
  }
}

void readahead(Page& page, const ReadaheadStats& readahead) {
  page.gauge("readahead_ahead_bytes", "Brought into memory for batches not assembled yet.");
  page.sample(readahead.ahead_bytes);
  page.gauge("readahead_kept_bytes",
             "Left in memory behind the plan, where the datasets are larger than it.");
  page.sample(readahead.kept_bytes);
  page.gauge("memory_pressure_share",
             "Share of the last 10 s for which programs of this control group waited for memory.");
  page.sample(readahead.pressure_share);
  const auto by_disk = [&](std::string_view name, std::string_view help, auto figure) {
    page.gauge(name, help);
    for (const ReadDiskStats& disk : readahead.disks) {
      page.sample({{"device", disk.device}}, disk.*figure);
    }
  };
  by_disk("readahead_under_way_bytes", "Asked for of a dataset's disk, and not there yet.",
          &ReadDiskStats::under_way_bytes);
  by_disk("readahead_window_bytes", "Most that is under way at a time.",
          &ReadDiskStats::window_bytes);
  by_disk("readahead_disk_bytes_per_second", "What the disk delivered at best of late.",
          &ReadDiskStats::bytes_per_second);
  by_disk("readahead_disk_latency_seconds", "The shortest read of late.",
          &ReadDiskStats::latency_seconds);
}

void delivered(Page& page, const Feeds& feeds) {
  for (std::size_t i = 0; i < kModeCounters; ++i) {
    const auto counter = static_cast<ModeCounter>(i);
    page.counter(fmt::format("{}_delivered_total", describe(counter).name), describe(counter).help);
    for (const FeedStatus& feed : feeds) {
      for (const wire::Mode mode : kModes) {
        page.sample({{"feed", feed.name}, {"mode", name_of(mode)}},
                    feed.counters.get(mode, counter));
      }
    }
  }
}

void counted(Page& page, const Feeds& feeds) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(FeedCounter::count); ++i) {
    const auto counter = static_cast<FeedCounter>(i);
    if (describe(counter).sum_of) continue;  // has a line for each mode instead
    page.counter(fmt::format("{}_total", describe(counter).name), describe(counter).help);
    for (const FeedStatus& feed : feeds)
      page.sample({{"feed", feed.name}}, feed.counters.get(counter));
  }
}

void states(Page& page, const Feeds& feeds) {
  page.gauge("feed_state", "1 for the state that the feed is in.");
  for (const FeedStatus& feed : feeds) {
    // A line for each state, 0 or 1, so that a state that ends is seen to end.
    for (const FeedState state : kFeedStates) {
      page.sample({{"feed", feed.name}, {"state", name_of(state)}}, feed.state == state ? 1 : 0);
    }
  }
  page.gauge("feed_bound", "1 for what the feed's throughput depends on, by the verdict.");
  for (const FeedStatus& feed : feeds) {
    for (const Bound bound : kBounds) {
      page.sample({{"feed", feed.name}, {"bound", name_of(bound)}},
                  feed.verdict.bound == bound ? 1 : 0);
    }
  }
  page.gauge(
      "dataset_locked",
      "Whether writers spare the pages that the feed reads: by a reader slot in lock.mdb, or "
      "because the file system is read-only.");
  for (const FeedStatus& feed : feeds) {
    page.sample({{"feed", feed.name}}, feed.dataset_lock == "none" ? 0 : 1);
  }
  page.gauge("dataset_stale",
             "Whether the dataset's path no longer leads to the files that the feed reads: it was "
             "renamed, replaced or removed.");
  for (const FeedStatus& feed : feeds) {
    page.sample({{"feed", feed.name}}, feed.dataset_stale ? 1 : 0);
  }
  page.gauge("blocked_seconds",
             "How long a file system has not answered on which the feed waits; 0: all answer.");
  for (const FeedStatus& feed : feeds) page.sample({{"feed", feed.name}}, feed.blocked_seconds);
  page.gauge("pinned", "1 for how the feed's arena is kept in memory.");
  for (const FeedStatus& feed : feeds) {
    for (const std::string_view state : {"none", "locked", "cuda"}) {
      page.sample({{"feed", feed.name}, {"state", state}}, feed.pinned == state ? 1 : 0);
    }
  }
  page.gauge("arena_pages", "1 for the kind of pages that the feed's arena lies in.");
  for (const FeedStatus& feed : feeds) {
    for (const std::string_view kind : {"small", "transparent", "reserved"}) {
      page.sample({{"feed", feed.name}, {"kind", kind}}, feed.pages == kind ? 1 : 0);
    }
  }
}

/// A line for each batch, and for at most so many: labels are not free.
void undone(Page& page, const Feeds& feeds) {
  constexpr std::size_t kMostLines = 16;
  page.gauge("queue_batch_undone",
             "How often a batch of the queue's epoch was begun and not done, from 3 on.");
  for (const FeedStatus& feed : feeds) {
    for (std::size_t i = 0; i < std::min(feed.undone.size(), kMostLines); ++i) {
      const UndoneStats& batch = feed.undone[i];
      page.sample({{"feed", feed.name},
                   {"batch", std::to_string(batch.index)},
                   {"set_aside", batch.set_aside ? "yes" : "no"}},
                  batch.times);
    }
  }
}

void memory(Page& page, const Feeds& feeds) {
  page.gauge("slots",
             "Slots of the arena by state. No client holds the batch of a slot that is "
             "ahead (a client will get it) or kept (every client has had it).");
  for (const FeedStatus& feed : feeds) {
    page.sample({{"feed", feed.name}, {"state", "free"}}, feed.slots.free);
    page.sample({{"feed", feed.name}, {"state", "filling"}}, feed.slots.filling);
    page.sample({{"feed", feed.name}, {"state", "ahead"}}, feed.slots.ahead);
    page.sample({{"feed", feed.name}, {"state", "kept"}}, feed.slots.kept());
    page.sample({{"feed", feed.name}, {"state", "held"}}, feed.slots.held);
  }
  page.gauge("arena_bytes", "Memory of all slots.");
  for (const FeedStatus& feed : feeds) page.sample({{"feed", feed.name}}, feed.arena_bytes);
  page.gauge("making_bytes", "Memory that making rows takes beside the slots.");
  for (const FeedStatus& feed : feeds) page.sample({{"feed", feed.name}}, feed.making_bytes);
}

void plans(Page& page, const Feeds& feeds) {
  page.gauge("dataset_sequences", "Sequences of the dataset.");
  for (const FeedStatus& feed : feeds) page.sample({{"feed", feed.name}}, feed.sequences);
  page.gauge("plan_padded_share", "Share of padding in the plan of the current epoch.");
  for (const FeedStatus& feed : feeds) {
    // None is not 0 %: an alert compares with it.
    if (feed.plans.empty()) continue;
    // The first epoch that is served, or was served last, as README.md has it.
    const PlanStats& plan = feed.plans.front();
    const auto share = padded_share(plan.frames, plan.padded_frames);
    if (share) page.sample({{"feed", feed.name}}, *share);
  }
  page.gauge("plan_seconds", "Time that planning the latest epoch took.");
  for (const FeedStatus& feed : feeds) page.sample({{"feed", feed.name}}, feed.plan_seconds);
}

void stage(Page& page, const std::string& labels, const Histogram& times) {
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

void stages(Page& page, const Feeds& feeds) {
  // Shown for a feed that is not open yet.
  static const Histogram kNone;
  page.histogram("stage_seconds", "Time of the stages of a batch's way.");
  for (const FeedStatus& feed : feeds) {
    for (std::size_t i = 0; i < kStages; ++i) {
      const auto which = static_cast<Stage>(i);
      stage(page, Page::prepare({{"feed", feed.name}, {"stage", describe(which).name}}),
            feed.stages == nullptr ? kNone : feed.stages->of(which));
    }
  }
  static const StageTimes kNoTimes;
  const auto times_of = [](const FeedStatus& feed) -> const StageTimes& {
    return feed.stages == nullptr ? kNoTimes : *feed.stages;
  };
  page.counter("make_seconds_total", "Time of assembling in each step of making rows.");
  for (const FeedStatus& feed : feeds) {
    for (std::size_t i = 0; i < kMakeSteps; ++i) {
      const auto step = static_cast<MakeStep>(i);
      page.sample({{"feed", feed.name}, {"step", describe(step).name}},
                  times_of(feed).seconds_in(step));
    }
  }
  page.counter("sound_seconds_total", "Sound that became rows, as long as it was stored.");
  for (const FeedStatus& feed : feeds) {
    page.sample({{"feed", feed.name}}, times_of(feed).sound_seconds());
  }
  page.counter("storage_wait_seconds_total",
               "Time of assembling spent waiting for pages to be in memory.");
  for (const FeedStatus& feed : feeds) {
    page.sample({{"feed", feed.name}}, times_of(feed).storage_wait_seconds());
  }
  page.counter("processor_wait_seconds_total",
               "Time of assembling in which the thread could have gone on and no processor was "
               "free.");
  for (const FeedStatus& feed : feeds) {
    page.sample({{"feed", feed.name}}, times_of(feed).processor_wait_seconds());
  }
}

}  // namespace

std::string render_metrics(const StatsSource& source) {
  Page page;
  // In the order of README.md's table. Each function writes whole metrics: their samples stay
  // together, as the format asks.
  process(page, source);
  service(page, source);
  disks(page, source);
  readahead(page, source.readahead);
  delivered(page, source.feeds);
  counted(page, source.feeds);
  states(page, source.feeds);
  undone(page, source.feeds);
  memory(page, source.feeds);
  plans(page, source.feeds);
  stages(page, source.feeds);
  add_client_metrics(page, source.feeds);
  return page.text();
}

}  // namespace batchwright
