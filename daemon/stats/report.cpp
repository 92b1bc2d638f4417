#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "daemon/stats/metrics/metric_rows.h"

namespace batchwright {

namespace {

namespace json = boost::json;

/// JSON has no infinity and no NaN.
json::value finite(double value) { return std::isfinite(value) ? json::value(value) : nullptr; }

json::value finite(const std::optional<double>& value) {
  return value ? finite(*value) : json::value();
}

json::value to_json(Number value) {
  if (const auto* real = std::get_if<double>(&value)) return finite(*real);
  return std::get<std::uint64_t>(value);
}

/// Adds the figures of rows that are of such an object: a feed, a disk, or the daemon.
template <class Of>
json::object with_figures(json::object out, const Of& of) {
  for (const MetricRow& row : metric_rows()) {
    const auto* source = std::get_if<Number (*)(const Of&)>(&row.source);
    if (source == nullptr || row.stats.empty()) continue;
    const std::size_t dot = row.stats.find('.');
    const bool within = dot != std::string_view::npos;
    json::object& at = within ? out[row.stats.substr(0, dot)].as_object() : out;
    at[row.stats.substr(within ? dot + 1 : 0)] = to_json((*source)(of));
  }
  return out;
}

json::object render(const SubscriberStatus& subscriber) {
  // As text: 64 bits do not survive a reader that keeps numbers as doubles.
  return {
      {"session", name_of(subscriber.session)},
      {"subscription", subscriber.subscription.value},
      {"client", utf8(subscriber.client)},
      {"pid", subscriber.pid},
      {"mode", name_of(subscriber.mode)},
      {"rank", subscriber.rank},
      {"ranks", subscriber.ranks},
      {"epoch", subscriber.epoch.value},
      {"step", subscriber.step.value},
      {"window_batches", subscriber.window},
      {"held_batches", subscriber.held},
      {"held_seconds", subscriber.held_for ? finite(subscriber.held_for->count()) : json::value()},
      {"credit_batches", credit_of(subscriber)},
      {"lag_batches", subscriber.lag_batches},
      {"delivered_batches", subscriber.delivered_batches},
      {"delivered_bytes", subscriber.delivered_bytes},
      {"waited_for_daemon_seconds", finite(subscriber.waited_for_daemon_seconds)},
      {"waited_for_client_seconds", finite(subscriber.waited_for_client_seconds)},
      {"waiting", name_of(subscriber.waiting)},
      {"position_share", finite(subscriber.position_share)}};
}

json::object render(const PlanStats& plan) {
  return {{"epoch", plan.epoch.value},
          {"steps", plan.steps},
          {"batches", plan.batches},
          {"sequences", plan.sequences},
          {"frames", plan.frames},
          {"padded_frames", plan.padded_frames},
          {"padded_share", finite(padded_share(plan.frames, plan.padded_frames))},
          {"zero_padding_rate", finite(plan.zero_padding_rate)}};
}

json::object render(const UndoneStats& batch) {
  return {{"epoch", batch.epoch.value},
          {"index", batch.index},
          {"times", batch.times},
          {"set_aside", batch.set_aside}};
}

json::object render(const SlotStats& slots) {
  return {{"free", slots.free},   {"filling", slots.filling}, {"ready", slots.ready},
          {"ahead", slots.ahead}, {"kept", slots.kept()},     {"held", slots.held}};
}

json::object render(const FeedCounters& counters) {
  json::object out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(FeedCounter::count); ++i) {
    const auto counter = static_cast<FeedCounter>(i);
    out[describe(counter).name] = counters.get(counter);
  }
  return out;
}

json::object render_modes(const FeedCounters& counters) {
  json::object out;
  for (const wire::Mode mode : kModes) {
    json::object figures;
    for (std::size_t i = 0; i < kModeCounters; ++i) {
      const auto counter = static_cast<ModeCounter>(i);
      figures[describe(counter).name] = counters.get(mode, counter);
    }
    out[name_of(mode)] = std::move(figures);
  }
  return out;
}

json::object render(const Histogram& times) {
  return {{"count", times.count()},
          {"seconds", times.seconds()},
          {"p50_seconds", finite(times.quantile(0.5))},
          {"p99_seconds", finite(times.quantile(0.99))}};
}

json::object render_stages(const StageTimes* stages) {
  // Shown for a feed that is not open yet: the keys are there from the start.
  static const Histogram kNone;
  json::object out;
  for (std::size_t i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    out[describe(stage).name] = render(stages == nullptr ? kNone : stages->of(stage));
  }
  return out;
}

/// Seconds in each step of making rows, and how fast that is: seconds of sound a second of a
/// thread, null where no sound was made.
json::object render_making(const StageTimes* stages) {
  static const StageTimes kNone;
  const StageTimes& times = stages == nullptr ? kNone : *stages;
  json::object steps;
  for (std::size_t i = 0; i < kMakeSteps; ++i) {
    const auto step = static_cast<MakeStep>(i);
    steps[describe(step).name] = times.seconds_in(step);
  }
  const double sound = times.sound_seconds();
  const double spent = times.make_seconds();
  json::value factor;
  if (sound > 0.0 && spent > 0.0) factor = sound / spent;
  return {{"steps", std::move(steps)}, {"sound_seconds", sound}, {"real_time_factor", factor}};
}

json::object render(const Rates& rates) {
  return {{"batches_per_second", finite(rates.batches_per_second)},
          {"bytes_per_second", finite(rates.bytes_per_second)},
          {"frames_per_second", finite(rates.frames_per_second)},
          {"sequences_per_second", finite(rates.sequences_per_second)},
          {"padded_share", finite(rates.padded_share)}};
}

json::object render(const Verdict& verdict) {
  return {{"text", name_of(verdict.bound)},
          {"why", verdict.why},
          {"window_seconds", FeedWindow::kSpan.count()}};
}

std::optional<double> in_seconds(const std::optional<LiveStatus::Seconds>& time) {
  return time ? std::optional(time->count()) : std::nullopt;
}

json::object render(const ProducerStatus& producer) {
  return {{"name", utf8(producer.name)},
          {"connected", producer.connected},
          {"session", name_of(producer.session)},
          {"client", utf8(producer.client)},
          {"pid", producer.pid},
          {"accepted", producer.accepted},
          {"accepted_bytes", producer.accepted_bytes},
          {"waiting", producer.waiting},
          {"dropped_stale", producer.dropped},
          {"abandoned", producer.abandoned},
          {"claimed", producer.claimed},
          {"held_bytes", producer.held_bytes},
          {"area_bytes", producer.area_bytes},
          {"pushed_seconds_ago", finite(in_seconds(producer.pushed_ago))},
          {"waits_for", producer.waits_for}};
}

json::object render(const StalenessHistogram& rows) {
  json::array ranges;
  for (std::size_t i = 0; i < StalenessHistogram::kRanges; ++i) {
    const bool is_last = i == StalenessHistogram::kBounds.size();
    json::value up_to;
    if (!is_last) up_to = StalenessHistogram::kBounds.at(i);
    ranges.push_back(json::object{{"up_to", std::move(up_to)}, {"rows", rows.in_range(i)}});
  }
  return {{"ranges", std::move(ranges)}, {"rows", rows.rows()}, {"sum", rows.sum()}};
}

/// One way copies all runs. 0.2.0 chose one for each length, and said so by length.
json::object render_copy(std::string_view way) {
  return {{"chosen", {{"short", way}, {"middle", way}, {"long", way}}}};
}

json::object render(const ReloadStats& reload) {
  return {{"applied", reload.applied},
          {"refused", reload.refused},
          {"last_refusal",
           reload.last_refusal ? json::value(utf8(*reload.last_refusal)) : json::value()},
          {"last_seconds_ago", reload.last_ago ? finite(reload.last_ago->count()) : json::value()}};
}

json::object render(const DiskStats& disk) {
  return with_figures({{"feed", utf8(disk.feed)}, {"file", disk.file}, {"path", utf8(disk.path)}},
                      disk);
}

json::object render(const ReadDiskStats& disk) {
  return with_figures({{"device", disk.device}}, disk);
}

json::object render(const NotReady& reason) {
  return {{"feed", reason.feed}, {"why", utf8(reason.why)}};
}

json::object render_events(const EventLog* events) {
  json::object out;
  for (const EventRow& row : kEventRows) {
    out[row.name] = events == nullptr ? 0 : events->get(row.event);
  }
  return out;
}

json::array render_latest(const EventLog* events) {
  json::array out;
  if (events == nullptr) return out;
  for (const LoggedEvent& each : events->latest()) {
    // system_clock counts from 1970 in UTC, as C++20 says.
    const std::chrono::duration<double> since_1970 = each.at.time_since_epoch();
    out.push_back(json::object{{"unix_seconds", since_1970.count()},
                               {"event", describe(each.event).name},
                               {"severity", name_of(describe(each.event).severity)},
                               {"text", utf8(each.text)}});
  }
  return out;
}

// Declared here because render_all() renders feeds, whose own members it renders, too.
json::object render(const FeedStatus& feed);

template <class Item>
json::array render_all(const std::vector<Item>& items) {
  json::array out;
  for (const Item& item : items) out.push_back(render(item));
  return out;
}

json::array render_all(const std::vector<std::filesystem::path>& paths) {
  json::array out;
  for (const auto& path : paths) out.emplace_back(utf8(path.string()));
  return out;
}

json::object render(const LiveStatus& live) {
  json::object dropped;
  for (std::size_t i = 0; i < kLiveDrops; ++i)
    dropped[kLiveDropNames.at(i)] = live.counts.dropped.at(i);
  json::object out{
      {"max_staleness", live.max_staleness ? json::value(*live.max_staleness) : json::value()},
      {"ended", live.ended},
      {"step_unit", live.step_unit},
      {"claims_wait_for", live.claims_wait_for},
      {"dropped", std::move(dropped)},
      {"mean_accepted_length", finite(live.counts.mean_accepted_length())},
      {"mean_dropped_length", finite(live.counts.mean_dropped_length())},
      {"version_seconds_ago", finite(in_seconds(live.version_ago))},
      {"pushed_seconds_ago", finite(in_seconds(live.pushed_ago))},
      {"staleness", render(live.counts.staleness)},
      {"step_needs", live.step_needs},
      {"step_has", live.step_has},
      {"wanted_slot_bytes", live.wanted_slot_bytes},
      {"unrecorded_bytes", live.unrecorded_bytes},
      {"pool", json::object{{"claimed", live.claimed},
                            {"waiting", live.waiting},
                            {"waiting_bytes", live.waiting_bytes},
                            {"kept", live.kept},
                            {"kept_bytes", live.kept_bytes},
                            {"in_steps", live.in_steps},
                            {"in_steps_bytes", live.in_steps_bytes}}},
      {"waited", json::object{{"room_seconds", live.counts.waited.room},
                              {"claims_pool_seconds", live.counts.waited.claims_pool},
                              {"claims_staleness_seconds", live.counts.waited.claims_staleness},
                              {"claims_trainer_seconds", live.counts.waited.claims_trainer}}},
      {"producers", render_all(live.producers)}};
  return with_figures(std::move(out), live);
}

json::object render(const FeedStatus& feed) {
  json::object out{{"name", utf8(feed.name)},
                   {"dataset", render_all(feed.dataset)},
                   {"dataset_lock", feed.dataset_lock},
                   {"dataset_stale", feed.dataset_stale},
                   {"blocked_by", utf8(feed.blocked_by)},
                   {"state", name_of(feed.state)},
                   {"reason", utf8(feed.reason)},
                   {"retried", feed.retried},
                   {"fingerprint", feed.fingerprint ? to_string(*feed.fingerprint) : ""},
                   {"world", feed.world},
                   {"counters", render(feed.counters)},
                   {"slots", render(feed.slots)},
                   {"slot_bytes", feed.slot_bytes},
                   {"pinned", utf8(feed.pinned)},
                   {"pages", utf8(feed.pages)},
                   {"plans", render_all(feed.plans)},
                   {"modes", render_modes(feed.counters)},
                   {"stages", render_stages(feed.stages.get())},
                   {"making", render_making(feed.stages.get())},
                   {"rates", render(feed.rates)},
                   {"verdict", render(feed.verdict)},
                   {"undone", render_all(feed.undone)},
                   {"subscribers", render_all(feed.subscribers)}};
  if (feed.live) out["live"] = render(*feed.live);
  return with_figures(std::move(out), feed);
}

}  // namespace

const char* name_of(FeedState state) {
  switch (state) {
    case FeedState::starting: return "starting";
    case FeedState::serving: return "serving";
    case FeedState::failed: return "failed";
  }
  return "unknown";
}

std::string name_of(SessionId session) { return fmt::format("{:x}", session.value); }

std::uint32_t credit_of(const SubscriberStatus& subscriber) {
  return subscriber.window - std::min(subscriber.held, subscriber.window);
}

std::uint64_t clients_refused(const StatsSource& source) {
  if (source.events == nullptr) return 0;
  // Turned away by the conversation, or before it by the key.
  return source.events->get(Event::client_refused) + source.events->get(Event::key_refused);
}

std::string render_stats(const StatsSource& source) {
  const ProcessStats& process = source.process;
  json::object page{
      {"version", utf8(source.version)},
      {"host", utf8(source.host)},
      {"uid", source.uid},
      {"uptime_seconds", finite(source.uptime.count())},
      {"pid", process.pid},
      {"anonymous_bytes", process.anonymous_bytes},
      {"mapped_file_bytes", process.mapped_file_bytes},
      {"shared_memory_bytes", process.shared_memory_bytes},
      {"arena_bytes", source.arena_bytes},
      {"ready", source.not_ready.empty()},
      {"not_ready", render_all(source.not_ready)},
      {"build", json::object{{"version", utf8(source.version)},
                             {"commit", utf8(source.commit)},
                             {"compiler", utf8(source.build.compiler)},
                             {"cuda", source.build.cuda}}},
      {"copy", render_copy(source.copy)},
      {"page_faults",
       json::object{{"minor", process.minor_page_faults}, {"major", process.major_page_faults}}},
      {"reload", render(source.reload)},
      {"http", json::object()},
      {"disks", render_all(source.disks)},
      {"readahead", json::object{{"disks", render_all(source.readahead.disks)}}},
      {"events", render_events(source.events)},
      {"latest_events", render_latest(source.events)},
      {"feeds", render_all(source.feeds)},
  };
  return json::serialize(with_figures(std::move(page), source));
}

std::string render_history(const StatsSource& source) {
  json::object feeds;
  for (const FeedStatus& feed : source.feeds) {
    json::array& points = feeds[utf8(feed.name)].emplace_array();
    if (feed.past == nullptr) continue;
    for (const PastRate& each : *feed.past) {
      const std::chrono::duration<double> uptime = each.taken - source.started;
      points.push_back({finite(uptime.count()), finite(each.bytes_per_second)});
    }
  }
  return json::serialize(json::object{{"bytes_per_second", std::move(feeds)}});
}

}  // namespace batchwright
