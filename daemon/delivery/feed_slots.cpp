// The other half of Feed: which batches are assembled, when, and in which slots.

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "daemon/delivery/feed.h"

namespace batchwright {
namespace {

constexpr std::size_t kMaxUnplannable = 1024;

}  // namespace

/// Assembles what is due soonest, as far as slots and threads allow. One job more than threads is
/// under way, so that a thread never waits for the loop, and a demand never waits behind many.
void Feed::prefetch() {
  if (failure_) return;
  for (std::uint64_t distance = 0; distance < cache_.size(); ++distance) {
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

/// The plan a subscription needs now, if it is there. Asks for it, and for the one behind it, so
/// that no epoch begins with a pause.
std::shared_ptr<const EpochSource> Feed::source(const Subscription& subscription) {
  const Epoch epoch = subscription.cursor.epoch();
  request_plan(epoch);
  if (subscription.epochs_left != 1) request_plan(Epoch{epoch.value + 1});
  return epochs_.find(epoch);
}

void Feed::request_plan(Epoch epoch) {
  if (unplannable_.contains(epoch) || !epochs_.request(epoch)) return;
  ports_.planner.plan(
      resources_.snapshot, settings_.plan, epoch,
      [this, epoch](Result<PlannedEpoch> result) { planned(epoch, std::move(result)); });
}

void Feed::planned(Epoch epoch, Result<PlannedEpoch> result) {
  if (result) {
    counters_.add(FeedCounter::epochs_planned);
    epochs_.planned(std::move(*result));
  } else {
    // A plan is a pure function: asking again would fail again. The bound is for who asks for
    // one impossible epoch after the other.
    spdlog::error("feed {}: epoch {}: {}", name(), epoch.value, result.error().message);
    epochs_.failed(epoch);
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
  std::set<Epoch> needed;
  for (const auto& [key, subscription] : subscriptions_) {
    if (subscription.finished) continue;
    needed.insert(subscription.cursor.epoch());
    needed.insert(Epoch{subscription.cursor.epoch().value + 1});
  }
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
