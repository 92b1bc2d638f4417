// What a live feed counts, and says of itself.

#include <algorithm>
#include <utility>

#include "daemon/delivery/feed/live/live_service.h"

namespace batchwright {
namespace {

/// How long ago something was, in seconds; empty: it never was.
std::optional<LiveStatus::Seconds> ago(const std::optional<std::uint64_t>& at_ms,
                                       std::uint64_t now_ms) {
  if (!at_ms) return {};
  return std::chrono::milliseconds(now_ms - std::min(*at_ms, now_ms));
}

}  // namespace

/// Until now all has waited that waited at the last event. A look at the pool in each millisecond
/// in which something happens, and none at a sequence.
void LiveService::pass_time(Time now) {
  const std::uint64_t before = clock_.now_ms;
  const std::uint64_t after = ms(now);
  if (after != before) add_waits(seen_.counts.waited, after - before);
  clock_.now_ms = after;
}

/// So many milliseconds have passed, and nothing else has happened.
void LiveService::add_waits(ProducerWaits& waits, std::uint64_t passed_ms) const {
  const double seconds = static_cast<double>(passed_ms) / 1000.0;
  const LivePoolStatus pool = pool_.status();
  waits.connected += seconds * static_cast<double>(producers_.connected().size());
  waits.room += seconds * static_cast<double>(pool.blocked_pushes);
  const double claims = seconds * static_cast<double>(pool.waiting_claims);
  // They are granted in order, so all wait for what the first of them waits for.
  if (pool.claims_wait_for == "pool") waits.claims_pool += claims;
  if (pool.claims_wait_for == "staleness") waits.claims_staleness += claims;
  if (pool.claims_wait_for == "trainer") waits.claims_trainer += claims;
}

void LiveService::count_accepted(LiveProducer& producer, const PushedSequence& sequence) {
  const std::uint64_t bytes = sequence.bytes();
  ++seen_.counts.accepted;
  seen_.counts.accepted_frames += length_of(sequence);
  seen_.counts.accepted_bytes += bytes;
  seen_.pushed_ms = producer.pushed_ms = clock_.now_ms;
  producer.accepted_bytes += bytes;
  producer.held_bytes += bytes;
}

LiveStatus LiveService::status(Time now, bool with_producers) const {
  const std::uint64_t now_ms = ms(now);
  LiveStatus status;
  status.counts = seen_.counts;
  add_waits(status.counts.waited, now_ms - clock_.now_ms);  // waits at hand count, too
  status.version_ago = ago(seen_.advanced_ms, now_ms);
  status.max_staleness = settings_.pool.max_staleness;
  status.pushed_ago = ago(seen_.pushed_ms, now_ms);
  status.wanted_slot_bytes = gate_.wanted_slot_bytes();
  status.ended = pool_.has_ended();
  if (waits_for_record()) status.unrecorded_bytes = record_->unwritten_bytes();
  status.producers_connected = producers_.connected().size();
  status.producers_known = producers_.size();
  add_pool(status, now_ms);
  if (with_producers) add_producers(status, now_ms);
  return status;
}

void LiveService::add_pool(LiveStatus& status, std::uint64_t now_ms) const {
  const LivePoolStatus pool = pool_.status();
  status.version = pool.version;
  status.steps = pool.steps;
  status.steps_kept = pool.steps - std::min(gate_.source().first_kept(), pool.steps);
  status.steps_ahead = pool.ahead;
  status.step_unit = word_of(kStepUnits, settings_.pool.step_unit);
  status.step_needs = settings_.pool.step;
  status.step_has = pool.next_step;
  status.claimed = pool.in_flight;
  status.waiting = pool.waiting;
  status.waiting_bytes = pool.bytes - pool.kept_bytes;
  status.kept = pool.kept;
  status.kept_bytes = pool.kept_bytes;
  status.in_steps = kept_.size() - std::min<std::uint64_t>(pool.waiting + pool.kept, kept_.size());
  status.in_steps_bytes = kept_.bytes() - std::min(pool.bytes, kept_.bytes());
  status.pool_sequences = settings_.pool.pool_sequences;
  status.pool_bytes = settings_.pool.pool_bytes;
  status.groups = pool.begun_groups;
  status.groups_missing = pool.missing;
  status.oldest_group = ago(pool.group_since_ms, now_ms);
  status.claims_waiting = pool.waiting_claims;
  status.claims_wait_for = pool.claims_wait_for;
  status.longest_claim = ago(pool.claim_since_ms, now_ms);
  status.pushes_waiting = pool.blocked_pushes;
  status.longest_push = ago(pool.push_since_ms, now_ms);
}

void LiveService::add_producers(LiveStatus& status, std::uint64_t now_ms) const {
  constexpr std::size_t kMost = LiveStatus::kMostProducers;
  std::vector<const LiveProducer*> shown;
  shown.reserve(producers_.connected().size());
  for (const auto& [key, id] : producers_.connected()) shown.push_back(&producers_.at(id));
  // One that has never pushed is the most silent of all.
  const auto silence = [](const LiveProducer* one) {
    return std::pair(one->pushed_ms.value_or(0), one->id);
  };
  const auto most = static_cast<std::ptrdiff_t>(std::min(kMost, shown.size()));
  std::partial_sort(shown.begin(), shown.begin() + most, shown.end(),
                    [&](const auto* a, const auto* b) { return silence(a) < silence(b); });
  shown.resize(static_cast<std::size_t>(most));
  // Of all others no more are looked at than there is room for, and than are connected.
  for (std::size_t id = producers_.size(); id > 0 && shown.size() < kMost; --id) {
    const LiveProducer& one = producers_.at(static_cast<ProducerId>(id - 1));
    if (!one.key) shown.push_back(&one);
  }
  for (const LiveProducer* one : shown) {
    status.producers.push_back(producer_status(*one, now_ms));
  }
}

ProducerStatus LiveService::producer_status(const LiveProducer& producer,
                                            std::uint64_t now_ms) const {
  const auto in = [&](wire::Outcome outcome) {
    return producer.outcomes.totals().at(static_cast<std::size_t>(outcome));
  };
  ProducerStatus status;
  status.name = producer.shown_name();
  status.connected = producer.key.has_value();
  status.session = producer.client.session;
  status.client = producer.client.program;
  status.pid = producer.client.pid;
  status.accepted = producer.next;
  status.accepted_bytes = producer.accepted_bytes;
  status.waiting = in(wire::Outcome::waiting);
  status.dropped = in(wire::Outcome::dropped_stale);
  status.abandoned = in(wire::Outcome::abandoned);
  status.claimed = pool_.claimed_by(producer.id);
  status.held_bytes = producer.held_bytes;
  status.area_bytes = producer.area.bytes.size();
  status.pushed_ago = ago(producer.pushed_ms, now_ms);
  // A push may be with the desk alone, which offers its sequences one by one.
  if (producer.claim) status.waits_for = "claim";
  if (producer.push && producer.push->offered) status.waits_for = "room";
  return status;
}

}  // namespace batchwright
