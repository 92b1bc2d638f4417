#include "daemon/delivery/feed/core/slots/slot_scheduler.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <utility>

namespace batchwright {
namespace {

/// So many batches in a row without a page fault: the dataset's pages are all in place.
constexpr std::uint64_t kCalm = 64;

/// So many batches are asked for ahead of time where there are fewer slots: their pages are to be
/// under way while the few are being assembled.
constexpr std::uint64_t kLeastReach = 16;

/// Made again for each distance of each turn of the loop, and so without the heap in most feeds.
using DueBatches = boost::container::small_vector<BatchId, 8>;

/// The batches that lie `distance` behind the next one of any cohort, each once.
DueBatches due_in(std::uint64_t distance, const std::vector<Cohort>& cohorts) {
  DueBatches ids;
  for (const Cohort& cohort : cohorts) {
    if (const auto id = cohort.upcoming.ahead(distance)) ids.push_back(*id);
  }
  if (ids.size() < 2) return ids;
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

std::uint64_t Stragglers::keeps_before(const Cohort& cohort, const BatchId& id) const {
  if (cohort.left_behind || !cohort.upcoming.follows_plan()) return 0;
  const auto behind = cohort.upcoming.distance(id);
  return behind && *behind < reach() ? *behind : 0;
}

Stragglers::Verdict Stragglers::wait_for(const BatchId& id, const std::vector<Cohort>& cohorts,
                                         Time now) {
  Verdict verdict;
  for (const Cohort& cohort : cohorts) {
    const std::uint64_t behind = keeps_before(cohort, id);
    if (behind == 0 || 2 * behind < slots_) continue;
    for (const auto& [key, state] : *cohort.at) {
      if (!state->budget) state->budget.emplace(most_, now);
      current_.emplace(key, state);
      if (state->budget->wait(now)) {
        verdict.waits = state->held_up = true;
      } else {
        verdict.left_behind.push_back({key, behind});
      }
    }
  }
  return verdict;
}

std::vector<SubscriptionKey> Stragglers::end_turn(const std::vector<Cohort>& cohorts, Time now) {
  std::vector<SubscriptionKey> caught_up;
  std::erase_if(current_, [&](const auto& entry) {
    const auto& [key, state] = entry;
    const bool awaited = state->budget->waiting() && state->held_up;
    state->held_up = false;
    if (!awaited) state->budget->stop_waiting(now);
    const bool catches_up = state->left_behind && has_caught_up(key, cohorts);
    if (catches_up) caught_up.push_back(key);
    return (!state->left_behind || catches_up) && !state->budget->waiting();
  });
  return caught_up;
}

bool Stragglers::has_caught_up(const SubscriptionKey& key,
                               const std::vector<Cohort>& cohorts) const {
  const auto mine = std::find_if(cohorts.begin(), cohorts.end(),
                                 [&key](const Cohort& cohort) { return cohort.at->contains(key); });
  if (mine == cohorts.end()) return true;
  return std::none_of(cohorts.begin(), cohorts.end(), [&](const Cohort& cohort) {
    if (!cohort.upcoming.follows_plan()) return false;
    const auto behind = mine->upcoming.distance(cohort.upcoming.cursor.next());
    return behind && *behind < reach() && 4 * *behind >= slots_;
  });
}

std::optional<SubscriptionKey> Stragglers::awaited() const {
  const auto found = std::find_if(current_.begin(), current_.end(), [](const auto& entry) {
    return entry.second->budget->waiting();
  });
  return found == current_.end() ? std::nullopt : std::optional(found->first);
}

SlotScheduler::SlotScheduler(std::shared_ptr<SlotGeneration> slots, const SchedulerLimits& limits)
    : slots_(std::move(slots)),
      generations_{slots_},
      stragglers_(slots_->cache.size(), limits.patience),
      threads_(limits.threads) {}

/// A slot whose batch is needed latest. Cohort n keeps those that it needs within its `kept[n]`
/// next batches.
std::optional<SlotIndex> SlotScheduler::take(const BatchId& id, const std::vector<Cohort>& cohorts,
                                             const std::vector<std::uint64_t>& kept) {
  return cache().take(id, [&](const BatchId& other) -> std::optional<std::uint64_t> {
    std::uint64_t need = SlotCache::kNeverNeeded;
    for (std::size_t i = 0; i < cohorts.size(); ++i) {
      const auto away = cohorts[i].upcoming.distance(other);
      if (away && *away < kept[i]) return {};
      if (away) need = std::min(need, *away);
    }
    return need;
  });
}

/// A slot for a batch this far away: one whose batch is needed later, or no longer.
std::optional<SlotIndex> SlotScheduler::take_due_in(std::uint64_t away, const BatchId& id,
                                                    const std::vector<Cohort>& cohorts) {
  std::vector<std::uint64_t> kept;
  kept.reserve(cohorts.size());
  for (const Cohort& cohort : cohorts) {
    kept.push_back(std::max(away + 1, stragglers_.keeps_before(cohort, id)));
  }
  return take(id, cohorts, kept);
}

/// Batches are begun one after the other, and so it is always the next one that waits for a slot.
std::optional<SlotScheduler::Assignment> SlotScheduler::assign(const BatchId& id,
                                                               std::optional<SlotIndex> slot,
                                                               Time now) {
  if (!wanted_since_) wanted_since_ = now;
  if (!slot) return {};
  ++filling_;
  return Assignment{id, {slots_, *slot}, now - *std::exchange(wanted_since_, std::nullopt)};
}

/// Once no straggler is waited for, a demand may push out anything that is not held, or two clients
/// could wait for each other. What is only due next may not, or two batches could push out each
/// other forever.
SlotScheduler::Answer SlotScheduler::demand(const Demand& wanted,
                                            const std::vector<Cohort>& cohorts, Time now) {
  Answer answer;
  auto slot = take_due_in(0, wanted.id, cohorts);
  if (!slot && wanted.follows_plan && cache().has_idle()) {
    answer.stragglers = stragglers_.wait_for(wanted.id, cohorts, now);
  }
  if (!slot && !answer.stragglers.waits) {
    slot = take(wanted.id, cohorts, std::vector<std::uint64_t>(cohorts.size(), 0));
  }
  answer.assignment = assign(wanted.id, slot, now);
  return answer;
}

/// At least one job more than threads is under way, so that a thread never waits for the loop. A
/// demand waits for none of them: it is more urgent.
std::vector<SlotScheduler::Assignment> SlotScheduler::ahead(const std::vector<Cohort>& cohorts,
                                                            Time now) {
  std::vector<Assignment> all;
  if (cohorts.empty()) wanted_since_.reset();
  for (std::uint64_t distance = 0; distance < cache().size() && !is_busy(); ++distance) {
    for (const BatchId& id : due_in(distance, cohorts)) {
      if (!is_missing(id)) continue;
      if (is_busy()) return all;
      auto next = assign(id, take_due_in(distance, id, cohorts), now);
      if (!next) return all;
      all.push_back(std::move(*next));
    }
  }
  return all;
}

void SlotScheduler::finished(const Assignment& done, const AssembledBatch& batch) {
  --filling_;
  without_faults_ = batch.page_faults == 0 ? without_faults_ + 1 : 0;
  SlotGeneration& generation = *done.slot.of;
  const SlotIndex slot = done.slot.index;
  const std::size_t first_byte = slot.value * generation.arena->slot_bytes();
  generation.cache.filled(slot, {first_byte + batch.offset, batch.size});
  generation.figures[slot.value] = {batch.rows, batch.frames, batch.padded_frames, 0};
}

void SlotScheduler::failed(const Assignment& done, const Error& error) {
  without_faults_ = 0;
  discard(done);
  broken_.insert_or_assign(done.id, error);
}

void SlotScheduler::discard(const Assignment& done) {
  --filling_;
  done.slot.of->cache.abandon(done.slot.index);
}

const Error* SlotScheduler::broken(const BatchId& id) const {
  const auto found = broken_.find(id);
  return found == broken_.end() ? nullptr : &found->second;
}

void SlotScheduler::forget_broken_beside(const std::set<Epoch>& needed) {
  std::erase_if(broken_,
                [&needed](const auto& entry) { return !needed.contains(entry.first.epoch); });
}

std::vector<BatchId> SlotScheduler::pages_wanted_after(const BatchId& id, std::uint64_t batches,
                                                       std::uint64_t next_batches) {
  asked_for_.erase(id);
  if (without_faults_ >= kCalm) return {};
  const std::uint64_t reach = std::max<std::uint64_t>(cache().size(), kLeastReach);
  // Those that are never begun, since clients left or moved.
  if (asked_for_.size() > 4 * reach) asked_for_.clear();
  std::vector<BatchId> wanted;
  // From the furthest on: usually it is the only one that was not asked for yet.
  for (std::uint64_t away = reach; away > 0; --away) {
    const std::uint64_t later = id.index.value + away;
    if (later >= batches + next_batches) continue;
    const BatchId next = later < batches
                             ? BatchId{id.epoch, BatchIndex{later}}
                             : BatchId{Epoch{id.epoch.value + 1}, BatchIndex{later - batches}};
    if (!is_missing(next)) continue;
    if (!asked_for_.insert(next).second) break;
    wanted.push_back(next);
  }
  std::reverse(wanted.begin(), wanted.end());
  return wanted;
}

std::uint32_t SlotScheduler::slots_ahead(const std::vector<Cohort>& cohorts) const {
  std::set<BatchId> ready;
  for (std::uint64_t distance = 0; distance < cache().size(); ++distance) {
    for (const BatchId& id : due_in(distance, cohorts)) {
      const auto slot = cache().find(id);
      const bool is_ready = slot && cache().state(*slot) == SlotState::ready;
      if (is_ready && !cache().is_held(*slot)) ready.insert(id);
    }
  }
  return static_cast<std::uint32_t>(ready.size());
}

void SlotScheduler::grow(std::shared_ptr<SlotGeneration> slots) {
  std::erase_if(generations_, [](const auto& generation) { return generation.expired(); });
  slots_ = std::move(slots);
  generations_.push_back(slots_);
}

std::vector<std::shared_ptr<SlotGeneration>> SlotScheduler::generations() const {
  std::vector<std::shared_ptr<SlotGeneration>> there;
  for (const auto& generation : generations_) {
    if (auto one = generation.lock()) there.push_back(std::move(one));
  }
  return there;
}

}  // namespace batchwright
