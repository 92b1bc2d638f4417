#include "daemon/figures.h"

#include <map>
#include <string>

namespace batchwright {
namespace {

SlotStats slot_stats(const SlotCache& slots) {
  const std::uint32_t held = slots.held();
  return {slots.count(SlotState::free), slots.count(SlotState::filling),
          slots.count(SlotState::ready) - held, held};
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

FeedStats feed_stats(const Feed& feed, const std::map<SessionId, Session>& sessions) {
  FeedStats stats;
  stats.name = feed.name();
  for (const auto& shard : feed.dataset().shards()) stats.dataset.push_back(shard.string());
  stats.state = feed.failure() ? FeedState::failed
                : feed.ready() ? FeedState::serving
                               : FeedState::starting;
  if (feed.failure()) stats.reason = feed.failure()->message;
  stats.counters = &feed.counters();
  stats.sequences = feed.snapshot().sequences();
  stats.fingerprint = to_string(feed.fingerprint());
  stats.world = feed.settings().plan.world;
  stats.slots = slot_stats(feed.slots());
  stats.slot_bytes = feed.arena().slot_bytes();
  stats.arena_bytes = feed.arena().bytes();
  stats.pinned = to_string(feed.arena().pinned());
  for (const PlannedEpoch& epoch : feed.epochs()) stats.plans.push_back(plan_stats(epoch));
  for (const auto& [key, subscription] : feed.subscriptions()) {
    const auto session = sessions.find(key.session);
    if (session == sessions.end()) continue;
    stats.subscribers.push_back({key.session, key.number, session->second.client.program,
                                 session->second.client.pid, subscription.mode, subscription.rank,
                                 subscription.ranks, subscription.cursor.epoch(),
                                 subscription.cursor.step(), subscription.window,
                                 static_cast<std::uint32_t>(subscription.leases.size())});
  }
  return stats;
}

}  // namespace

Figures::Figures(const Server& server, std::uint64_t memory_ceiling_bytes)
    : server_(server),
      memory_ceiling_bytes_(memory_ceiling_bytes),
      started_(std::chrono::steady_clock::now()) {}

StatsSource Figures::source() const {
  StatsSource source;
  source.version = BATCHWRIGHT_VERSION;
  source.uptime = std::chrono::steady_clock::now() - started_;
  source.process = read_process_stats();
  source.memory_ceiling_bytes = memory_ceiling_bytes_;
  source.arena_bytes = memory_ceiling_bytes_ - server_.memory().left();
  source.sessions = static_cast<std::uint32_t>(server_.sessions().size());
  for (const auto& feed : server_.feeds()) {
    source.feeds.push_back(feed_stats(*feed, server_.sessions()));
  }
  return source;
}

}  // namespace batchwright
