// The part of Feed that knows which batches are assembled, when, and in which slots.

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "daemon/delivery/feed.h"

namespace batchwright {
namespace {

/// So many batches in a row without a page fault: the dataset's pages are all in place.
constexpr std::uint64_t kCalm = 64;

}  // namespace

/// The batch a subscription waits for and nobody has begun to assemble.
std::optional<BatchId> Feed::demand_of(const SubscriptionKey& key, const Subscription& of) const {
  if (!of.has_credit()) return {};
  const auto id = next_of(of);
  if (!id || slots_->cache.find(*id) || broken_.contains(*id)) return {};
  return may_take(key, *id) && !leads_too_far(of) ? id : std::nullopt;
}

/// Each time beginning with another of the batches that are wanted. What is refused to one is so to
/// all that want it.
void Feed::assemble_demands() {
  std::vector<std::pair<BatchId, SubscriptionKey>> demands;
  for (const auto& [wanted, wanting] : roster_.wanted()) {
    if (slots_->cache.find(wanted) || broken_.contains(wanted)) continue;
    for (const SubscriptionKey& key : wanting.all) {
      const auto id = demand_of(key, subscriptions_.at(key));
      if (!id) continue;
      demands.emplace_back(*id, key);
      break;
    }
  }
  if (demands.empty()) return;
  std::rotate(demands.begin(), demands.begin() + long(turn_ % demands.size()), demands.end());
  for (const auto& [id, key] : demands) assemble(id, 0, &subscriptions_.at(key));
}

/// Assembles what is due soonest, as far as slots and threads allow. One job more than threads is
/// under way, so that a thread never waits for the loop, and a demand never waits behind many.
void Feed::prefetch() {
  if (had_subscriber_ && fronts_.empty()) slot_wanted_.reset();
  std::vector<BatchId> ids;
  for (std::uint64_t distance = 0; distance < slots_->cache.size(); ++distance) {
    if (filling_ > ports_.assembly_threads) return;
    find_due(distance, ids);
    for (const BatchId& id : ids) {
      if (slots_->cache.find(id) || broken_.contains(id)) continue;
      if (filling_ > ports_.assembly_threads || !assemble(id, distance, nullptr)) return;
    }
  }
}

/// One for all that stand at the same place.
void Feed::find_fronts() {
  fronts_.clear();
  for (const auto& [place, keys] : places_.all()) {
    const Subscription& front = subscriptions_.at(*keys.begin());
    if (!waits_for_plan(front)) fronts_.push_back(&front);
  }
}

/// The batches that lie `distance` behind the next one of any subscription. Before the first
/// subscriber comes: those of the first epoch, so that nobody has to wait for the first batches.
void Feed::find_due(std::uint64_t distance, std::vector<BatchId>& ids) const {
  ids.clear();
  if (!had_subscriber_) {
    const auto first = epochs_.find(first_epoch().epoch);
    if (first && distance < first->plan.batches()) {
      ids.push_back({first->epoch, BatchIndex{distance}});
    }
    return;
  }
  for (const Subscription* front : fronts_) {
    if (const auto id = ahead(*front, distance)) ids.push_back(*id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

/// The batch that comes `distance` batches after a subscription's next one.
std::optional<BatchId> Feed::ahead(const Subscription& subscription, std::uint64_t distance) const {
  const std::size_t rehearsals = subscription.rehearsals.size();
  if (distance < rehearsals) return subscription.rehearsals[distance];
  const Epoch epoch = subscription.cursor.epoch();
  const Epoch next{epoch.value + 1};
  if (subscription.in_queue()) {
    if (queue().epoch() != epoch) return {};
    const auto index = queue().ahead(distance - rehearsals, batches_of(epoch));
    return index ? std::optional(BatchId{epoch, *index}) : std::nullopt;
  }
  const bool goes_on = subscription.epochs_left != 1 && distance > 0;
  return subscription.cursor.ahead(distance - rehearsals, steps_of(epoch),
                                   goes_on ? steps_of(next) : 0);
}

std::optional<std::uint64_t> Feed::distance(const Subscription& subscription,
                                            const BatchId& id) const {
  const auto& rehearsals = subscription.rehearsals;
  const auto found = std::find(rehearsals.begin(), rehearsals.end(), id);
  if (found != rehearsals.end()) return static_cast<std::uint64_t>(found - rehearsals.begin());
  std::optional<std::uint64_t> away;
  if (!subscription.in_queue()) {
    away = subscription.cursor.distance(id, steps_of(subscription.cursor.epoch()));
  } else if (queue().epoch() == id.epoch) {
    away = queue().distance(id.index);
  }
  return away ? std::optional(*away + rehearsals.size()) : std::nullopt;
}

/// A slot whose batch is needed latest. Front n keeps those that it needs within its `kept[n]`
/// next batches.
std::optional<SlotIndex> Feed::take_slot(const BatchId& id,
                                         const std::vector<std::uint64_t>& kept) {
  return slots_->cache.take(id, [&](const BatchId& other) -> std::optional<std::uint64_t> {
    std::uint64_t need = SlotCache::kNeverNeeded;
    for (std::size_t i = 0; i < fronts_.size(); ++i) {
      const auto away = distance(*fronts_[i], other);
      if (away && *away < kept[i]) return {};
      if (away) need = std::min(need, *away);
    }
    return need;
  });
}

/// A slot for a batch this far away: one whose batch is needed later, or no more.
std::optional<SlotIndex> Feed::slot_due_in(std::uint64_t away, const BatchId& id) {
  std::vector<std::uint64_t> kept;
  kept.reserve(fronts_.size());
  for (const Subscription* front : fronts_) {
    kept.push_back(std::max(away + 1, keeps_before(*front, id)));
  }
  return take_slot(id, kept);
}

/// A slot for what somebody waits for and can have: once no straggler is waited for, it may push
/// out anything that nobody holds, or two could wait for each other. What is only due next may
/// not, or two could push out each other for ever.
std::optional<SlotIndex> Feed::slot_on_demand(const Subscription& waiting, const BatchId& id) {
  if (const auto slot = slot_due_in(0, id)) return slot;
  if (await_stragglers(waiting, id)) return {};
  return take_slot(id, std::vector<std::uint64_t>(fronts_.size(), 0));
}

/// Batches are begun one after the other, and so it is always the next one that waits for a slot.
void Feed::note_slot(bool found) {
  const auto now = WaitingTimes::Time::clock::now();
  if (!slot_wanted_) slot_wanted_ = now;
  if (!found) return;
  times_->add(Stage::wait_for_slot, now - *slot_wanted_);
  slot_wanted_.reset();
}

/// False when the batch cannot be begun now. It is on demand when somebody is waiting for it.
bool Feed::assemble(const BatchId& id, std::uint64_t away, const Subscription* waiting) {
  auto epoch = epochs_.find(id.epoch);
  if (!epoch || slots_->cache.find(id)) return false;
  const auto index = waiting == nullptr ? slot_due_in(away, id) : slot_on_demand(*waiting, id);
  note_slot(index.has_value());
  if (!index) return false;
  ++filling_;
  read_ahead(*epoch, id.index);
  const SlotRef slot{slots_, *index};
  const std::uint64_t data = epoch->fingerprint.data;
  auto done = [this, slot, id, data](Result<AssembledBatch> batch) {
    boost::asio::post(ports_.loop, [this, slot, id, data, batch = std::move(batch)]() mutable {
      const bool outdated = settings_.follow && contents_.find(id.epoch) != data;
      outdated ? discard(slot) : assembled(slot, id, std::move(batch));
    });
  };
  ports_.assembler.submit(std::move(epoch), style_, id.index, slots_->arena->slot(*index),
                          std::move(done), waiting == nullptr ? Urgency::ahead : Urgency::demanded);
  return true;
}

/// The epoch is planned anew from other data meanwhile.
void Feed::discard(const SlotRef& slot) {
  --filling_;
  slot.of->cache.abandon(slot.index);
  if (!failure_) note_first_batch();
  pump();
}

/// Whoever waits for the feed to be ready waits no longer.
void Feed::note_first_batch() {
  if (std::exchange(has_first_batch_, true)) return;
  ports_.log.note<Event::feed_ready>(name());
  if (on_state_) on_state_();
}

/// Wishes for the pages of the batch that comes as many batches later as there are slots: those
/// before it are assembled or about to be. Where all pages are in place asking is not free: the
/// kernel looks up each of them.
void Feed::read_ahead(const EpochSource& epoch, BatchIndex index) {
  if (without_faults_ >= kCalm) return;
  const std::uint64_t ahead = index.value + slots_->cache.size();
  const std::uint64_t batches = epoch.plan.batches();
  if (ahead < batches) {
    ports_.readahead.will_need(epochs_.find(epoch.epoch), BatchIndex{ahead}, times_);
  } else if (auto next = epochs_.find(Epoch{epoch.epoch.value + 1});
             next && ahead - batches < next->plan.batches()) {
    ports_.readahead.will_need(std::move(next), BatchIndex{ahead - batches}, times_);
  }
}

void Feed::assembled(const SlotRef& slot, const BatchId& id, Result<AssembledBatch> batch) {
  --filling_;
  slots_changed_ = true;
  without_faults_ = batch && batch->page_faults == 0 ? without_faults_ + 1 : 0;
  SlotGeneration& generation = *slot.of;
  if (batch) {
    generation.cache.filled(
        slot.index,
        {slot.index.value * generation.arena->slot_bytes() + batch->offset, batch->size});
    generation.figures[slot.index.value] = {batch->rows, batch->frames, batch->padded_frames, 0};
    count_assembled(id, *batch);
  } else {
    generation.cache.abandon(slot.index);
    const bool data_is_gone = batch.error().code == ErrorCode::store_unavailable;
    if (batch.error().code == ErrorCode::corrupt_record) {
      counters_.add(FeedCounter::corrupt_records);
    }
    ports_.log.note<Event::batch_not_assembled>(name(), id.epoch.value, id.index.value,
                                                batch.error().message);
    if (data_is_gone || bars_all(id, batch.error())) {
      fail(batch.error());
    } else {
      broken_.emplace(id, batch.error());
    }
  }
  if (!failure_ && (had_subscriber_ || is_first(id))) note_first_batch();
  if (!failure_) serve_waiting_for(id);
  settle();
}

/// Whether nobody can begin without this batch, and so trainers are not to be sent here.
bool Feed::bars_all(const BatchId& id, const Error& error) const {
  const bool resumed = resources_.journal && queue().epoch() > id.epoch;
  return error.code == ErrorCode::corrupt_record && is_first(id) && !had_subscriber_ && !resumed;
}

bool Feed::is_first(const BatchId& id) const {
  return id == BatchId{first_epoch().epoch, BatchIndex{0}};
}

/// Of what is further away than the slots reach, nothing was assembled for its own sake.
std::uint32_t Feed::slots_ahead() const {
  const SlotCache& cache = slots_->cache;
  std::set<BatchId> ahead_of_some;
  for (const auto& [place, keys] : places_.all()) {
    const Subscription& front = subscriptions_.at(*keys.begin());
    if (waits_for_plan(front)) continue;
    for (std::uint64_t distance = 0; distance < cache.size(); ++distance) {
      const auto id = ahead(front, distance);
      const auto slot = id ? cache.find(*id) : std::nullopt;
      const bool ready = slot && cache.state(*slot) == SlotState::ready;
      if (ready && !cache.is_held(*slot)) ahead_of_some.insert(*id);
    }
  }
  if (!had_subscriber_) return cache.count(SlotState::ready);
  return static_cast<std::uint32_t>(ahead_of_some.size());
}

void Feed::count_assembled(const BatchId& id, const AssembledBatch& batch) {
  counters_.add(FeedCounter::batches_assembled);
  counters_.add(FeedCounter::bytes_assembled, batch.size);
  counters_.add(FeedCounter::corrupt_records, batch.skipped.size());
  counters_.add(FeedCounter::sequences_skipped, batch.skipped.size());
  if (epochs_.mark_assembled(id)) counters_.add(FeedCounter::batches_reassembled);
  for (const SkippedSequence& skipped : batch.skipped) count_lost(id, skipped);
}

/// A few bad records are what `skip` is for. Many are another matter than that, such as a damaged
/// disk, and training on what is left would be training on other data.
void Feed::count_lost(const BatchId& id, const SkippedSequence& skipped) {
  ports_.log.note<Event::sequence_skipped>(name(), id.epoch.value, id.index.value,
                                           skipped.ordinal.value, skipped.reason);
  const auto epoch = epochs_.find(id.epoch);
  if (!epoch) return;
  const std::uint64_t sequences = epoch->plan.counts().selected;
  const std::uint64_t allowed = losses_allowed(settings_.max_corrupt_share, sequences);
  const std::uint64_t lost = epochs_.mark_lost(id.epoch, skipped.ordinal);
  if (lost <= allowed) return;
  fail({ErrorCode::corrupt_record,
        fmt::format("{} of the {} sequences of epoch {} are corrupt so far, max_corrupt_share = {} "
                    "allows {}; the last: sequence {}: {}",
                    lost, sequences, id.epoch.value, settings_.max_corrupt_share, allowed,
                    skipped.ordinal.value, skipped.reason)});
}

}  // namespace batchwright
