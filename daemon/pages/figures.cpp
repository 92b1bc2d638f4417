#include "daemon/pages/figures.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/host_name.hpp>
#include <utility>

#include "daemon/config/config.h"
#include "daemon/log.h"

namespace batchwright {
namespace {

#ifdef __clang__
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

FeedSample sample_of(const FeedStatus& feed, std::chrono::steady_clock::time_point now) {
  const FeedCounters& counters = feed.counters;
  const StageTimes& times = *feed.stages;
  FeedSample sample;
  sample.taken = now;
  sample.delivered = {counters.get(FeedCounter::sequences_delivered),
                      counters.get(FeedCounter::frames_delivered),
                      counters.get(FeedCounter::padded_frames_delivered),
                      counters.get(FeedCounter::bytes_delivered)};
  sample.batches_delivered = counters.get(FeedCounter::batches_delivered);
  sample.batches_assembled = counters.get(FeedCounter::batches_assembled);
  // Waits while pages are fetched are in the second figure, which is a part of the first.
  sample.own = {times.of(Stage::assemble).seconds() + times.of(Stage::fetch).seconds(),
                times.storage_wait_seconds(), times.of(Stage::readahead).seconds(),
                times.make_seconds(), times.processor_wait_seconds()};
  sample.clients_waited_seconds = feed.waited.clients;
  sample.slot_waited_seconds = feed.waited.slots;
  sample.step_waited_seconds = feed.waited.steps;
  sample.daemon_waited_seconds = feed.waited.daemon;
  if (!feed.live) return sample;
  const LiveCounts& counts = feed.live->counts;
  sample.producers = counts.waited;
  sample.accepted = counts.accepted;
  sample.dropped_stale = counts.dropped.at(static_cast<std::size_t>(LiveDrop::stale));
  return sample;
}

}  // namespace

Figures::Figures(boost::asio::io_context& loop, Server& server, std::uint64_t memory_ceiling_bytes)
    : server_(server),
      memory_ceiling_bytes_(memory_ceiling_bytes),
      host_(boost::asio::ip::host_name()),
      timer_(loop) {
  sample();
}

void Figures::sample() {
  const Time now = std::chrono::steady_clock::now();
  const EventLog::Turn turn(server_.log(), "a sample of all figures", {}, now);
  const std::vector<FeedStatus> feeds = server_.status(now, Detail::without_clients).feeds;
  // By number, which no other feed ever gets: one that was replaced begins without a past.
  std::erase_if(past_, [&feeds](const auto& entry) {
    return std::none_of(feeds.begin(), feeds.end(), [&entry](const FeedStatus& feed) {
      return !feed.retried && feed.number == entry.first;
    });
  });
  for (const FeedStatus& feed : feeds) {
    if (!feed.retried) sample(feed, now);
  }
  // What is left are the threads that hand batches over, and those that look after all.
  const double handing =
      std::chrono::duration<double>(process_run_delay()).count() - busy_.processor_wait_seconds;
  for (auto& [number, past] : past_) {
    // Not before the samples of all feeds are in it.
    past.latest.all = busy_;
    past.latest.handing_delay_seconds = handing;
    past.window.add(past.latest);
  }
  timer_.expires_after(FeedWindow::kInterval);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) sample();
  });
}

void Figures::sample(const FeedStatus& feed, Time now) {
  const auto [found, is_new] = past_.try_emplace(feed.number);
  found->second.name = feed.name;
  FeedSample& latest = found->second.latest;
  // A new entry has zeros: then all that the feed has done so far is added to busy_.
  const FeedSample before = latest;
  latest = sample_of(feed, now);
  busy_ += latest.own;
  busy_ -= before.own;
  // Of a feed that is new it is not known since when it has had subscriptions.
  if (is_new) return;
  latest.subscribed_seconds =
      before.subscribed_seconds +
      std::chrono::duration<double>(now - before.taken).count() * feed.active;
}

/// Rates and verdict. Nothing for a feed that was added since the last sample: they take two.
void Figures::add_past(FeedStatus& feed, unsigned assembly_threads) const {
  const auto past = past_.find(feed.number);
  if (past == past_.end()) return;
  // What the counters do not say, and the verdict needs to tell idle from blocked.
  FeedMoment moment{feed.failure.has_value(), feed.waits_for_plan, feed.active,
                    feed.slots.ahead,         feed.slots.filling,  assembly_threads,
                    feed.slots_to_set};
  moment.other = busiest_other(feed.number);
  moment.live = feed.live ? &*feed.live : nullptr;
  const FeedWindow& window = past->second.window;
  feed.rates = window.rates();
  feed.past = &window.past();
  feed.verdict = window.verdict(moment);
  if (!feed.blocked_by.empty()) feed.verdict = {Bound::storage, feed.reason};
}

BusiestOther Figures::busiest_other(ArenaNumber than) const {
  BusiestOther busiest;
  for (const auto& [number, past] : past_) {
    if (number == than) continue;
    const BusySeconds busy = past.window.busy();
    if (!busiest.feed.empty() && busy.assemble_seconds <= busiest.busy.assemble_seconds) continue;
    busiest = {past.name, busy};
  }
  return busiest;
}

StatsSource Figures::source() const {
  const Time now = std::chrono::steady_clock::now();
  StatsSource source;
  static_cast<ServerStatus&>(source) = server_.status(now);
  source.version = BATCHWRIGHT_VERSION;
  source.commit = build_commit();
  source.uid = ::geteuid();
  source.host = host_;
  source.uptime = now - started_;
  source.started = started_;
  source.started_unix_seconds =
      std::chrono::duration<double>(started_by_calendar_.time_since_epoch()).count();
  source.process = read_process_stats();
  source.memory_ceiling_bytes = memory_ceiling_bytes_;
  // Including memory that a reload has claimed and not yet put to use.
  source.arena_bytes = memory_ceiling_bytes_ - source.memory_left_bytes;
  source.readahead.pressure_share = memory_pressure();
  source.build = {kCompiler, built_with_cuda()};
  source.log_lines_dropped = dropped_log_lines();
  source.events = &server_.log();
  for (FeedStatus& feed : source.feeds) {
    if (!feed.retried) add_past(feed, source.assembly_threads);
  }
  return source;
}

}  // namespace batchwright
