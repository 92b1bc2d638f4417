#include <fmt/format.h>

#include "daemon/stats/metrics/metric_rows.h"

namespace batchwright {
namespace {

using Page = MetricsPage;
using Daemon = const StatsSource&;
using Live = const LiveStatus&;

double seconds_or_0(const std::optional<LiveStatus::Seconds>& time) {
  return time ? time->count() : 0.0;
}

/// Calls `write(name, status)` for each live feed.
template <class Write>
void for_each_live(Daemon daemon, Write write) {
  for (const FeedStatus& feed : daemon.feeds) {
    if (feed.live) write(feed.name, *feed.live);
  }
}

void write_pool_sequences(Page& page, Daemon daemon) {
  for_each_live(daemon, [&page](const std::string& feed, Live live) {
    for (const auto& [state, count] :
         {std::pair("claimed", live.claimed), std::pair("waiting", live.waiting),
          std::pair("kept", live.kept), std::pair("in_steps", live.in_steps)}) {
      page.sample({{"feed", feed}, {"state", state}}, count);
    }
  });
}

void write_pool_bytes(Page& page, Daemon daemon) {
  for_each_live(daemon, [&page](const std::string& feed, Live live) {
    for (const auto& [state, bytes] :
         {std::pair("waiting", live.waiting_bytes), std::pair("kept", live.kept_bytes),
          std::pair("in_steps", live.in_steps_bytes)}) {
      page.sample({{"feed", feed}, {"state", state}}, bytes);
    }
  });
}

void write_producer_waits(Page& page, Daemon daemon) {
  for_each_live(daemon, [&page](const std::string& feed, Live live) {
    const ProducerWaits& waited = live.counts.waited;
    for (const auto& [what, seconds] :
         {std::pair("room", waited.room), std::pair("claim_pool", waited.claims_pool),
          std::pair("claim_staleness", waited.claims_staleness),
          std::pair("claim_trainer", waited.claims_trainer)}) {
      page.sample({{"feed", feed}, {"wait", what}}, seconds);
    }
  });
}

void write_dropped(Page& page, Daemon daemon) {
  for_each_live(daemon, [&page](const std::string& feed, Live live) {
    for (std::size_t i = 0; i < kLiveDrops; ++i) {
      page.sample({{"feed", feed}, {"reason", kLiveDropNames.at(i)}}, live.counts.dropped.at(i));
    }
  });
}

void write_staleness(Page& page, Daemon daemon) {
  for_each_live(daemon, [&page](const std::string& feed, Live live) {
    const StalenessHistogram& rows = live.counts.staleness;
    const std::string labels = Page::prepare({{"feed", feed}});
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < StalenessHistogram::kBounds.size(); ++i) {
      sum += rows.in_range(i);
      page.part("_bucket", fmt::format("{},le=\"{}\"", labels, StalenessHistogram::kBounds.at(i)),
                sum);
    }
    page.part("_bucket", labels + ",le=\"+Inf\"", rows.rows());
    page.part("_sum", labels, rows.sum());
    page.part("_count", labels, rows.rows());
  });
}

// clang-format off: one row is one metric
const std::vector<MetricRow> kOfLiveFeeds{
    {"live_version", "gauge", "The version that trainers of a live feed have announced.",
     [](Live of) -> Number { return of.version; }, "version"},
    {"live_version_age_seconds", "gauge", "Time since one was announced; 0 before the first.",
     [](Live of) -> Number { return seconds_or_0(of.version_ago); }},
    {"live_steps_total", "counter", "Steps that a live feed has cut.",
     [](Live of) -> Number { return of.steps; }, "steps"},
    {"live_steps_kept", "gauge", "Of them, those that can still be assembled.",
     [](Live of) -> Number { return of.steps_kept; }, "steps_kept"},
    {"live_steps_ahead", "gauge", "Of them, those that may not be trained yet.",
     [](Live of) -> Number { return of.steps_ahead; }, "steps_ahead"},
    {"live_step_share", "gauge",
     "What is complete for the next step, as a share of a full one; more than one step may be.",
     [](Live of) -> Number {
       return of.step_needs == 0
                  ? 0.0
                  : static_cast<double>(of.step_has) / static_cast<double>(of.step_needs);
     }},
    {"live_staleness", "histogram",
     "Rows of steps by how many versions they were behind the one that trainers had announced.",
     MetricLines{"feed, le", write_staleness}},
    {"live_pool_sequences", "gauge",
     "Sequences of the pool that are to come (claimed, or missing from groups), waiting (in no "
     "step "
     "so far) or kept (delivered, to be delivered again), and those beside it that are in steps.",
     MetricLines{"feed, state", write_pool_sequences}},
    {"live_pool_bytes", "gauge", "Bytes of the same.",
     MetricLines{"feed, state", write_pool_bytes}},
    {"live_pool_limit_sequences", "gauge", "Most sequences of the pool.",
     [](Live of) -> Number { return of.pool_sequences; }, "pool.limit"},
    {"live_pool_limit_bytes", "gauge", "Most bytes of the pool.",
     [](Live of) -> Number { return of.pool_bytes; }, "pool.limit_bytes"},
    {"live_groups_incomplete", "gauge", "Groups that lack members.",
     [](Live of) -> Number { return of.groups; }, "groups"},
    {"live_groups_missing", "gauge", "Members that they lack.",
     [](Live of) -> Number { return of.groups_missing; }, "groups_missing"},
    {"live_group_longest_seconds", "gauge", "Age of the oldest of them.",
     [](Live of) -> Number { return seconds_or_0(of.oldest_group); }, "oldest_group_seconds"},
    {"live_claims_waiting", "gauge", "Claims of producers that wait.",
     [](Live of) -> Number { return of.claims_waiting; }, "claims_waiting"},
    {"live_claim_longest_seconds", "gauge", "How long the first of them has waited.",
     [](Live of) -> Number { return seconds_or_0(of.longest_claim); }, "longest_claim_seconds"},
    {"live_pushes_waiting", "gauge", "Pushes of producers that wait for room in the pool.",
     [](Live of) -> Number { return of.pushes_waiting; }, "pushes_waiting"},
    {"live_push_longest_seconds", "gauge", "How long the first of them has waited.",
     [](Live of) -> Number { return seconds_or_0(of.longest_push); }, "longest_push_seconds"},
    {"live_producer_waits_seconds_total", "counter",
     "How long producers have waited, in seconds of each: pushes for room, and claims for room in "
     "the "
     "pool, for a newer version, or for the first trainer to ask.",
     MetricLines{"feed, wait", write_producer_waits}},
    {"live_producers", "gauge", "Producers that are connected.",
     [](Live of) -> Number { return of.producers_connected; }, "producers_connected"},
    {"live_producer_seconds_total", "counter",
     "Time of producers being connected: what their waits are shares of.",
     [](Live of) -> Number { return of.counts.waited.connected; }, "waited.connected_seconds"},
    {"live_producer_names", "gauge",
     "Names of producers that the feed knows, of those that are gone, too; it knows 65,536 at "
     "most.",
     [](Live of) -> Number { return of.producers_known; }, "producers_known"},
    {"live_accepted_total", "counter", "Sequences that a live feed has accepted.",
     [](Live of) -> Number { return of.counts.accepted; }, "accepted"},
    {"live_accepted_frames_total", "counter", "Frames of them.",
     [](Live of) -> Number { return of.counts.accepted_frames; }, "accepted_frames"},
    {"live_accepted_bytes_total", "counter", "Bytes of them.",
     [](Live of) -> Number { return of.counts.accepted_bytes; }, "accepted_bytes"},
    {"live_dropped_total", "counter",
     "Sequences that were accepted and came to no trainer: too stale, late (their group was cut or "
     "closed before), of an incomplete group, or abandoned by their producer.",
     MetricLines{"feed, reason", write_dropped}},
    {"live_dropped_frames_total", "counter", "Frames of them.",
     [](Live of) -> Number { return of.counts.dropped_frames; }, "dropped_frames"},
    {"live_rows_zeroed_total", "counter", "Rows of steps that got weight 0, as too stale.",
     [](Live of) -> Number { return of.counts.rows_zeroed; }, "rows_zeroed"},
    {"live_duplicates_total", "counter",
     "Sequences that were offered again, and not accepted again.",
     [](Live of) -> Number { return of.counts.duplicates; }, "duplicates"},
    {"live_pushes_timed_out_total", "counter", "Pushes that found no room in time.",
     [](Live of) -> Number { return of.counts.pushes_timed_out; }, "pushes_timed_out"},
    {"live_pushes_refused_total", "counter", "Pushes that cannot be accepted, as they are.",
     [](Live of) -> Number { return of.counts.pushes_refused; }, "pushes_refused"},
    {"live_claims_timed_out_total", "counter", "Claims that were not granted in time.",
     [](Live of) -> Number { return of.counts.claims_timed_out; }, "claims_timed_out"}};
// clang-format on

}  // namespace

const std::vector<MetricRow>& live_metric_rows() { return kOfLiveFeeds; }

}  // namespace batchwright
