// The other half of Feed: which batches are assembled, when, and in which slots.

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "daemon/delivery/feed.h"

namespace batchwright {
namespace {

constexpr std::size_t kMaxUnplannable = 1024;

/// Memory for the plans that one feed's subscribers may need at the same time, and what a plan
/// takes of it for each sequence.
constexpr std::uint64_t kPlanBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kPlanBytesPerSequence = 8;

/// Ranks that are still to come, or to come back, of the jobs that some ranks are here of. Jobs
/// are told apart by their number of ranks; several of one number are counted together.
std::size_t absent_ranks(const std::map<SubscriptionKey, Subscription>& subscriptions) {
  std::map<std::uint32_t, std::size_t> present;
  for (const auto& [key, subscription] : subscriptions) {
    if (subscription.mode == wire::Mode::sharded) ++present[subscription.ranks];
  }
  std::size_t absent = 0;
  for (const auto& [ranks, count] : present) absent += (ranks - count % ranks) % ranks;
  return absent;
}

}  // namespace

/// Whether a subscription may hold one batch more. Who holds nothing always may. Who holds some
/// leaves a slot for each batch that the others wait for empty-handed, for each rank that is still
/// to come, since the ranks that are here may wait for it with their batches in hand, and one for
/// a newcomer: else a few could hold every slot, and all would wait for them. A batch that another
/// holds takes no slot now, but would keep the last one when the other gives it back.
bool Feed::may_take(const Subscription& subscription, const BatchId& id) const {
  if (subscription.leases.empty()) return true;
  const std::size_t left = cache_.size() - cache_.held();
  if (is_held(id)) return left > 0;
  const std::size_t kept = absent_ranks(subscriptions_) + 1;
  return left > subscriptions_.size() + kept || left > needy() + kept;
}

/// Batches that somebody who holds nothing gets next and that nobody holds yet.
std::size_t Feed::needy() const {
  std::set<BatchId> ids;
  for (const auto& [key, subscription] : subscriptions_) {
    if (!subscription.accepted || subscription.finished || !subscription.leases.empty()) continue;
    const BatchId id = subscription.cursor.next();
    if (!is_held(id)) ids.insert(id);
  }
  return ids.size();
}

bool Feed::is_held(const BatchId& id) const {
  const auto slot = cache_.find(id);
  return slot && cache_.is_held(*slot);
}

/// The batch a subscription waits for and nobody has begun to assemble.
std::optional<BatchId> Feed::demand_of(const Subscription& subscription) const {
  if (!subscription.accepted || subscription.finished || !subscription.has_credit()) return {};
  const BatchId id = subscription.cursor.next();
  if (subscription.cursor.at_end(steps_of(id.epoch)) || cache_.find(id) || broken_.contains(id)) {
    return {};
  }
  return may_take(subscription, id) ? std::optional(id) : std::nullopt;
}

/// Assembles what is due soonest, as far as slots and threads allow. One job more than threads is
/// under way, so that a thread never waits for the loop, and a demand never waits behind many.
void Feed::prefetch() {
  for (std::uint64_t distance = 0; distance < cache_.size(); ++distance) {
    if (filling_ > ports_.assembly_threads) return;
    for (const BatchId& id : due(distance)) {
      if (cache_.find(id) || broken_.contains(id)) continue;
      if (filling_ > ports_.assembly_threads || !assemble(id, distance)) return;
    }
  }
}

/// The batches that lie `distance` behind the next one of any subscription. Before the first
/// subscriber comes: those of the first epoch, so that nobody has to wait for the first batches.
std::set<BatchId> Feed::due(std::uint64_t distance) const {
  std::set<BatchId> ids;
  if (!had_subscriber_) {
    const EpochSource& first = first_epoch();
    if (distance < first.plan.batches()) ids.insert({first.epoch, BatchIndex{distance}});
    return ids;
  }
  for (const auto& [key, subscription] : subscriptions_) {
    if (!subscription.accepted || subscription.finished) continue;
    const Cursor& cursor = subscription.cursor;
    const Epoch next{cursor.epoch().value + 1};
    const bool goes_on = subscription.epochs_left != 1;
    const auto id = cursor.ahead(distance, steps_of(cursor.epoch()), goes_on ? steps_of(next) : 0);
    if (id) ids.insert(*id);
  }
  return ids;
}

/// Whether some subscription needs this batch at most `within` batches from now.
bool Feed::wanted(const BatchId& id, std::uint64_t within) const {
  for (const auto& [key, subscription] : subscriptions_) {
    if (!subscription.accepted || subscription.finished) continue;
    const auto distance = subscription.cursor.distance(id, steps_of(subscription.cursor.epoch()));
    if (distance && *distance <= within) return true;
  }
  return false;
}

/// A slot for a batch this far away: one whose batch is needed later, or no more. What somebody
/// waits for right now may push out anything that nobody holds, or two could wait for each other.
std::optional<SlotIndex> Feed::slot_for(const BatchId& id, std::uint64_t distance) {
  const auto slot =
      cache_.take(id, [this, distance](const BatchId& other) { return wanted(other, distance); });
  if (slot || distance > 0) return slot;
  return cache_.take(id, [](const BatchId&) { return false; });
}

/// False when the batch cannot be begun now.
bool Feed::assemble(const BatchId& id, std::uint64_t distance) {
  auto epoch = epochs_.find(id.epoch);
  if (!epoch) return false;
  const auto slot = slot_for(id, distance);
  if (!slot) return false;
  ++filling_;
  read_ahead(*epoch, id.index);
  ports_.assembler.submit(std::move(epoch), style_, id.index, arena().slot(*slot),
                          [this, slot = *slot, id](Result<AssembledBatch> batch) {
                            boost::asio::post(ports_.loop,
                                              [this, slot, id, batch = std::move(batch)]() mutable {
                                                assembled(slot, id, std::move(batch));
                                              });
                          });
  return true;
}

/// Wishes for the pages of the batch that comes as many batches later as there are slots: those
/// before it are assembled or about to be.
void Feed::read_ahead(const EpochSource& epoch, BatchIndex index) {
  const std::uint64_t ahead = index.value + cache_.size();
  const std::uint64_t batches = epoch.plan.batches();
  if (ahead < batches) {
    ports_.readahead.will_need(epochs_.find(epoch.epoch), BatchIndex{ahead});
  } else if (auto next = epochs_.find(Epoch{epoch.epoch.value + 1});
             next && ahead - batches < next->plan.batches()) {
    ports_.readahead.will_need(std::move(next), BatchIndex{ahead - batches});
  }
}

void Feed::assembled(SlotIndex slot, const BatchId& id, Result<AssembledBatch> batch) {
  --filling_;
  if (batch) {
    cache_.filled(slot, {slot.value * arena().slot_bytes() + batch->offset, batch->size});
    figures_[slot.value] = {batch->rows, batch->frames, batch->padded_frames, 0};
    count_assembled(id, *batch);
  } else {
    cache_.abandon(slot);
    const bool data_is_gone = batch.error().code == ErrorCode::store_unavailable;
    if (batch.error().code == ErrorCode::corrupt_record) {
      counters_.add(FeedCounter::corrupt_records);
    }
    spdlog::error("feed {}: epoch {} batch {}: {}", name(), id.epoch.value, id.index.value,
                  batch.error().message);
    if (data_is_gone) {
      fail(batch.error());
    } else {
      broken_.emplace(id, batch.error());
    }
  }
  if (!std::exchange(ready_, true) && on_ready_) on_ready_();
  pump();
}

void Feed::count_assembled(const BatchId& id, const AssembledBatch& batch) {
  counters_.add(FeedCounter::batches_assembled);
  counters_.add(FeedCounter::bytes_assembled, batch.size);
  counters_.add(FeedCounter::corrupt_records, batch.skipped.size());
  counters_.add(FeedCounter::sequences_skipped, batch.skipped.size());
  if (epochs_.mark_assembled(id)) counters_.add(FeedCounter::batches_reassembled);
  for (const SkippedSequence& skipped : batch.skipped) {
    spdlog::warn("feed {}: epoch {} batch {}: sequence {} is left out: {}", name(), id.epoch.value,
                 id.index.value, skipped.ordinal.value, skipped.reason);
  }
}

/// The epochs that subscriptions stand in, and those that they come to after them.
std::set<Epoch> Feed::needed_epochs(bool with_next) const {
  std::set<Epoch> needed;
  for (const auto& [key, subscription] : subscriptions_) {
    if (subscription.finished) continue;
    needed.insert(subscription.cursor.epoch());
    if (!with_next || subscription.epochs_left == 1) continue;
    needed.insert(Epoch{subscription.cursor.epoch().value + 1});
  }
  return needed;
}

/// Different epochs that subscriptions may stand in: 8 for the largest datasets, 64 at most.
std::size_t Feed::most_epochs() const {
  const std::uint64_t plan = resources_.snapshot->sequences() * kPlanBytesPerSequence;
  return std::clamp<std::uint64_t>(kPlanBytes / plan, 8, 64);
}

/// Asks for one plan, if one is missing: of an epoch somebody stands in, or else of the one behind
/// it, so that no epoch begins with a pause. The choice is made anew after each plan, for by then
/// who wanted another may be gone.
void Feed::request_plan() {
  if (planning_) return;
  for (const bool with_next : {false, true}) {
    for (const Epoch epoch : needed_epochs(with_next)) {
      if (epochs_.find(epoch) || unplannable_.contains(epoch)) continue;
      planning_ = true;
      return ports_.planner.plan(
          resources_.snapshot, settings_.plan, epoch,
          [this, epoch](Result<PlannedEpoch> result) { planned(epoch, std::move(result)); });
    }
  }
}

void Feed::planned(Epoch epoch, Result<PlannedEpoch> result) {
  planning_ = false;
  if (result) {
    counters_.add(FeedCounter::epochs_planned);
    epochs_.planned(std::move(*result));
    forget_epochs();
  } else {
    // A plan is a pure function: asking again would fail again. The bound is for who asks for
    // one impossible epoch after the other.
    spdlog::error("feed {}: epoch {}: {}", name(), epoch.value, result.error().message);
    if (unplannable_.size() >= kMaxUnplannable) unplannable_.clear();
    unplannable_.emplace(epoch, result.error());
  }
  pump();
}

std::uint64_t Feed::steps_of(Epoch epoch) const {
  const auto found = epochs_.find(epoch);
  return found ? found->plan.steps() : 0;
}

void Feed::forget_epochs() {
  std::set<Epoch> needed = needed_epochs(true);
  if (needed.empty()) needed.insert(first_epoch().epoch);
  epochs_.keep(needed);
  std::erase_if(broken_,
                [&needed](const auto& entry) { return !needed.contains(entry.first.epoch); });
}

void Feed::refuse(const SubscriptionKey& key, Subscription& subscription, const Error& error) {
  subscription.finished = true;
  wire::RefusedT refused;
  refused.code = static_cast<std::uint16_t>(error.code);
  refused.message = error.message;
  refused.subscription = key.number;
  ports_.send(key.session, encode(std::move(refused)));
}

void Feed::fail(const Error& error) {
  if (failure_) return;
  failure_ = Error{error.code, fmt::format("feed {} failed: {}", name(), error.message)};
  spdlog::error("{}", failure_->message);
  for (auto& [key, subscription] : subscriptions_) {
    if (!subscription.finished) refuse(key, subscription, *failure_);
  }
}

}  // namespace batchwright
