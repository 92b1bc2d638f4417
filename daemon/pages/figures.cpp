#include "daemon/pages/figures.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>
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

SlotStats slot_stats(const Feed& feed) {
  const SlotCache& slots = feed.slots();
  // What clients hold is ready, too, and is counted once: as held.
  const std::uint32_t held = slots.held();
  return {slots.count(SlotState::free), slots.count(SlotState::filling),
          slots.count(SlotState::ready) - held, held, feed.slots_ahead()};
}

ReadaheadStats readahead_stats(const ReadaheadFigures& figures) {
  ReadaheadStats stats{figures.ahead_bytes, figures.kept_bytes, memory_pressure(), {}};
  for (const DiskFigures& disk : figures.disks) {
    stats.disks.push_back({fmt::format("{}:{}", major(disk.device), minor(disk.device)),
                           disk.under_way_bytes, disk.window_bytes, disk.bytes_per_second,
                           disk.latency.count()});
  }
  return stats;
}

PlanStats plan_stats(const PlannedEpoch& epoch) {
  const PlanTotals& totals = epoch.totals;
  return {epoch.source->epoch,
          epoch.source->plan.steps(),
          epoch.source->plan.batches(),
          totals.sequences,
          totals.frames,
          totals.padded_frames,
          totals.zero_padding_rate};
}

/// Whether it has a place of its own in an epoch, ahead of others or behind.
bool has_position(const Subscription& subscription) {
  return subscription.is_served() && !subscription.in_queue();
}

/// The subscription that is ahead of all others, of those that have a position; null: none has.
const Subscription* furthest(const Feed& feed) {
  const Subscription* first = nullptr;
  // Epoch before step: a step counts within its epoch.
  const auto place = [](const Subscription& of) {
    return std::pair(of.cursor.epoch(), of.cursor.step());
  };
  for (const auto& [key, subscription] : feed.subscriptions()) {
    if (!has_position(subscription)) continue;
    if (first == nullptr || place(*first) < place(subscription)) first = &subscription;
  }
  return first;
}

/// What share of its epoch lies behind a subscription.
double position_share(const Feed& feed, const Subscription& subscription,
                      const std::vector<PlanStats>& plans) {
  if (subscription.is_over()) return 1.0;
  const Epoch epoch = subscription.cursor.epoch();
  const auto plan = std::find_if(plans.begin(), plans.end(),
                                 [epoch](const PlanStats& each) { return each.epoch == epoch; });
  if (plan == plans.end() || plan->steps == 0) return 0.0;
  // A queue has no order of its own, so its share is that of the batches that are done.
  if (!subscription.in_queue()) {
    return static_cast<double>(subscription.cursor.step().value) / static_cast<double>(plan->steps);
  }
  if (feed.queue().epoch() != epoch || plan->batches == 0) return 0.0;
  return static_cast<double>(feed.queue().done_count()) / static_cast<double>(plan->batches);
}

SubscriberStats subscriber_stats(const SubscriptionKey& key, const Subscription& subscription,
                                 std::chrono::steady_clock::time_point now) {
  SubscriberStats stats;
  stats.session = key.session;
  stats.subscription = key.number;
  stats.client = subscription.client.program;
  stats.pid = subscription.client.pid;
  stats.mode = subscription.terms.mode;
  stats.rank = subscription.terms.rank;
  stats.ranks = subscription.terms.ranks;
  stats.epoch = subscription.cursor.epoch();
  stats.step = subscription.cursor.step();
  stats.window = subscription.terms.window;
  stats.held = static_cast<std::uint32_t>(subscription.leases.size());
  if (const auto since = subscription.holds_since()) stats.held_for = now - *since;
  stats.waited_for_daemon_seconds = subscription.waiting.daemon_seconds(now);
  stats.waited_for_client_seconds = subscription.waiting.client_seconds(now);
  stats.waiting = subscription.waiting.now();
  stats.delivered_batches = subscription.delivered;
  stats.delivered_bytes = subscription.delivered_bytes;
  return stats;
}

std::vector<SubscriberStats> subscribers_of(const Feed& feed, const std::vector<PlanStats>& plans,
                                            std::chrono::steady_clock::time_point now) {
  std::vector<SubscriberStats> all;
  const Subscription* first = furthest(feed);
  for (const auto& [key, subscription] : feed.subscriptions()) {
    all.push_back(subscriber_stats(key, subscription, now));
    all.back().position_share = position_share(feed, subscription, plans);
    // Without a position there is nothing to be behind; what takes from a queue has none.
    if (first == nullptr || !has_position(subscription)) continue;
    all.back().lag_batches = feed.batches_behind(subscription, *first);
  }
  return all;
}

/// Those that can still wait or be waited for.
std::uint32_t active(const Subscriptions& subscriptions) {
  return static_cast<std::uint32_t>(
      std::count_if(subscriptions.begin(), subscriptions.end(),
                    [](const auto& entry) { return !entry.second.is_over(); }));
}

bool waits_for_plan(const Feed& feed) {
  const Subscriptions& all = feed.subscriptions();
  return std::any_of(all.begin(), all.end(),
                     [&feed](const auto& entry) { return feed.waits_for_plan(entry.second); });
}

std::vector<UndoneStats> undone_stats(const Feed& feed) {
  std::vector<UndoneStats> stats;
  for (const auto& [index, batch] : feed.queue().undone()) {
    if (batch.times < WorkQueue::kOften && !batch.set_aside) continue;
    stats.push_back({feed.queue().epoch(), index, batch.times, batch.set_aside});
  }
  return stats;
}

/// A client that waits for a feed that is absent.
SubscriberStats guest_stats(const WaitingRoom::Guest& guest,
                            std::chrono::steady_clock::time_point now) {
  const wire::SubscribeT& request = guest.request;
  SubscriberStats stats;
  stats.session = guest.client.session;
  stats.subscription = {request.subscription};
  stats.client = guest.client.program;
  stats.pid = guest.client.pid;
  stats.mode = request.mode;
  stats.rank = request.rank;
  stats.ranks = request.ranks;
  stats.epoch = Epoch{request.epoch};
  stats.step = Step{request.step};
  stats.window = request.window;
  stats.waited_for_daemon_seconds = std::chrono::duration<double>(now - guest.since).count();
  stats.waiting = WaitingFor::daemon;
  return stats;
}

FeedStats absent_stats(const Server& server, const AbsentFeed& feed,
                       std::chrono::steady_clock::time_point now) {
  FeedStats stats;
  stats.name = feed.name;
  for (const auto& shard : feed.dataset) stats.dataset.push_back(shard.string());
  stats.state = feed.opening ? FeedState::starting : FeedState::failed;
  stats.retried = true;
  // In the words that its clients are told.
  stats.reason = feed.told().message;
  stats.pinned = to_string(PinState::none);
  stats.pages = to_string(PageKind::small);
  stats.verdict = feed.opening ? Verdict{Bound::idle, stats.reason}
                               : Verdict{Bound::failed, "the feed is not served, see its reason"};
  for (const WaitingRoom::Guest* guest : server.waiting_for(feed.name)) {
    stats.subscribers.push_back(guest_stats(*guest, now));
  }
  return stats;
}

FeedSample sample_of(const Feed& feed, std::chrono::steady_clock::time_point now) {
  const FeedCounters& counters = feed.counters();
  const WaitedSeconds waited = feed.waited(now);
  FeedSample sample;
  sample.taken = now;
  sample.delivered = {counters.get(FeedCounter::sequences_delivered),
                      counters.get(FeedCounter::frames_delivered),
                      counters.get(FeedCounter::padded_frames_delivered),
                      counters.get(FeedCounter::bytes_delivered)};
  sample.batches_delivered = counters.get(FeedCounter::batches_delivered);
  sample.batches_assembled = counters.get(FeedCounter::batches_assembled);
  // Waits while pages are fetched are in the second figure, which is a part of the first.
  sample.own = {
      feed.times().of(Stage::assemble).seconds() + feed.times().of(Stage::fetch).seconds(),
      feed.times().storage_wait_seconds(), feed.times().of(Stage::readahead).seconds(),
      feed.times().make_seconds(), feed.times().processor_wait_seconds()};
  sample.clients_waited_seconds = waited.clients;
  sample.slot_waited_seconds = waited.slots;
  sample.daemon_waited_seconds = waited.daemon;
  return sample;
}

}  // namespace

Figures::Figures(boost::asio::io_context& loop, const Server& server,
                 std::uint64_t memory_ceiling_bytes)
    : server_(server),
      memory_ceiling_bytes_(memory_ceiling_bytes),
      host_(boost::asio::ip::host_name()),
      timer_(loop) {
  sample();
}

void Figures::sample() {
  const Time now = std::chrono::steady_clock::now();
  // By number, which no other feed ever gets: one that was replaced begins without a past.
  std::erase_if(past_, [this](const auto& entry) {
    return std::none_of(server_.feeds().begin(), server_.feeds().end(),
                        [&entry](const auto& feed) { return feed->number() == entry.first; });
  });
  for (const auto& feed : server_.feeds()) sample(*feed, now);
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

void Figures::sample(const Feed& feed, Time now) {
  const auto [found, is_new] = past_.try_emplace(feed.number());
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
      std::chrono::duration<double>(now - before.taken).count() * active(feed.subscriptions());
}

FeedStats Figures::feed_stats(const Feed& feed, Time now) const {
  FeedStats stats;
  stats.name = feed.name();
  for (const auto& shard : feed.dataset().shards()) stats.dataset.push_back(shard.string());
  stats.dataset_lock = name_of(feed.dataset().lock());
  stats.state = feed.state();
  stats.dataset_stale = !feed.stale().empty();
  stats.reason = feed.failure() ? feed.failure()->message : feed.stale();
  if (stats.reason.empty() && !feed.why_not_newer().empty()) {
    stats.reason = "sequences that were appended are left out: " + feed.why_not_newer();
  }
  if (const auto& blockage = feed.blockage(); blockage && !feed.failure()) {
    stats.reason = describe(*blockage, now);
    stats.blocked_by = blockage->by;
    stats.blocked_seconds = std::chrono::duration<double>(now - blockage->since).count();
  }
  // Not copied: the page is rendered before the loop goes on (figures.h).
  stats.counters = &feed.counters();
  stats.stages = &feed.times();
  stats.sequences = feed.snapshot().sequences();
  stats.fingerprint = to_string(feed.fingerprint());
  stats.world = feed.settings().plan.world;
  stats.slots = slot_stats(feed);
  stats.slot_bytes = feed.arena().slot_bytes();
  stats.arena_bytes = feed.arena().bytes();
  stats.making_bytes = feed.making_bytes();
  stats.pinned = to_string(feed.arena().pinned());
  stats.pages = to_string(feed.arena().pages());
  stats.plan_seconds = feed.plan_seconds();
  for (const PlannedEpoch& epoch : feed.epochs()) stats.plans.push_back(plan_stats(epoch));
  stats.subscribers = subscribers_of(feed, stats.plans, now);
  stats.undone = undone_stats(feed);
  const auto past = past_.find(feed.number());
  // Added since the last sample: rates and a verdict take two.
  if (past == past_.end()) return stats;
  // What the counters do not say, and the verdict needs to tell idle from blocked.
  FeedMoment moment{feed.failure().has_value(), waits_for_plan(feed), active(feed.subscriptions()),
                    stats.slots.ahead,          stats.slots.filling,  server_.assembly_threads(),
                    feed.slots_to_set()};
  moment.other = busiest_other(feed);
  const FeedWindow& window = past->second.window;
  stats.rates = window.rates();
  stats.past = &window.past();
  stats.verdict = window.verdict(moment);
  if (!stats.blocked_by.empty()) stats.verdict = {Bound::storage, stats.reason};
  return stats;
}

BusiestOther Figures::busiest_other(const Feed& feed) const {
  BusiestOther busiest;
  for (const auto& other : server_.feeds()) {
    const auto past = past_.find(other->number());
    if (other->number() == feed.number() || past == past_.end()) continue;
    const BusySeconds busy = past->second.window.busy();
    if (!busiest.feed.empty() && busy.assemble_seconds <= busiest.busy.assemble_seconds) continue;
    busiest = {other->name(), busy};
  }
  return busiest;
}

StatsSource Figures::source() const {
  const Time now = std::chrono::steady_clock::now();
  StatsSource source;
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
  source.arena_bytes = memory_ceiling_bytes_ - server_.memory().left();
  source.readahead = readahead_stats(server_.readahead().figures());
  source.sessions = static_cast<std::uint32_t>(server_.sessions().size());
  source.build = {kCompiler, built_with_cuda()};
  source.copy = server_.copies().name();
  source.log_lines_dropped = dropped_log_lines();
  source.events = &server_.log();
  for (const auto& feed : server_.feeds()) source.feeds.push_back(feed_stats(*feed, now));
  for (const AbsentFeed& feed : server_.absent()) {
    source.feeds.push_back(absent_stats(server_, feed, now));
  }
  return source;
}

}  // namespace batchwright
