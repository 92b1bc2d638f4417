#include "daemon/assembly/slot_cache.h"

#include <algorithm>

namespace batchwright {

SlotCache::SlotCache(std::uint32_t slots) : slots_(slots) {}

std::optional<SlotIndex> SlotCache::find(const BatchId& id) const {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  return found->second;
}

SlotState SlotCache::state(SlotIndex slot) const { return slots_.at(slot.value).state; }

const Extent& SlotCache::extent(SlotIndex slot) const {
  must(state(slot) == SlotState::ready, "a batch whose place is asked for is ready");
  return slots_[slot.value].extent;
}

std::optional<SlotIndex> SlotCache::take(const BatchId& id, const Need& need) {
  must(!by_id_.contains(id), "a batch has one slot");
  const auto chosen = choose(need);
  if (!chosen) return std::nullopt;
  Slot& slot = slots_[chosen->value];
  // The batch that had this slot is gone from here on: find() must not give its bytes away.
  if (slot.state == SlotState::ready) by_id_.erase(slot.id);
  slot = Slot{SlotState::filling, id, {}, 0, ++clock_};
  by_id_.emplace(id, *chosen);
  return chosen;
}

std::optional<SlotIndex> SlotCache::choose(const Need& need) const {
  std::optional<SlotIndex> chosen;
  std::uint64_t latest = 0;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    // No batch has to go for a free one.
    if (slot.state == SlotState::free) return SlotIndex{i};
    if (slot.state == SlotState::filling || slot.holders != 0) continue;
    const auto needed = need(slot.id);
    // Belady: the batch that is needed latest goes.
    if (!needed || (chosen && *needed < latest)) continue;
    // Of those needed equally late, as all that are never needed, the least recently used one.
    const bool is_newer = chosen && slots_[chosen->value].last_use < slot.last_use;
    if (is_newer && *needed == latest) continue;
    chosen = SlotIndex{i};
    latest = *needed;
  }
  return chosen;
}

void SlotCache::filled(SlotIndex slot, const Extent& extent) {
  must(state(slot) == SlotState::filling, "a slot that is filled was filling");
  slots_[slot.value].state = SlotState::ready;
  slots_[slot.value].extent = extent;
  slots_[slot.value].last_use = ++clock_;
}

void SlotCache::abandon(SlotIndex slot) {
  must(state(slot) == SlotState::filling, "a slot that is abandoned was filling");
  forget(slot);
}

void SlotCache::hold(SlotIndex slot) {
  must(state(slot) == SlotState::ready, "a slot that is held is ready");
  if (slots_[slot.value].holders++ == 0) ++held_;
  slots_[slot.value].last_use = ++clock_;
}

bool SlotCache::release(SlotIndex slot) {
  must(state(slot) == SlotState::ready && is_held(slot), "a slot that is given back is held");
  slots_[slot.value].last_use = ++clock_;
  if (--slots_[slot.value].holders != 0) return false;
  --held_;
  return true;
}

void SlotCache::retire(SlotIndex slot) {
  must(state(slot) == SlotState::ready && !is_held(slot), "a slot that is retired is not held");
  forget(slot);
  // No batch can be found or put there, until abandon() frees it.
  slots_[slot.value].state = SlotState::filling;
}

bool SlotCache::has_idle() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
    return slot.state == SlotState::ready && slot.holders == 0;
  });
}

bool SlotCache::holds_of(Epoch epoch) const {
  return std::any_of(slots_.begin(), slots_.end(), [epoch](const Slot& slot) {
    return slot.holders != 0 && slot.id.epoch == epoch;
  });
}

void SlotCache::forget_epoch(Epoch epoch) {
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.state == SlotState::ready && slot.holders == 0 && slot.id.epoch == epoch) {
      forget(SlotIndex{i});
    }
  }
}

/// A retired slot's batch may stand under another slot by now.
void SlotCache::forget(SlotIndex slot) {
  const auto found = by_id_.find(slots_[slot.value].id);
  if (found != by_id_.end() && found->second == slot) by_id_.erase(found);
  slots_[slot.value] = Slot{};
}

std::uint32_t SlotCache::count(SlotState state) const {
  return static_cast<std::uint32_t>(std::count_if(
      slots_.begin(), slots_.end(), [state](const Slot& slot) { return slot.state == state; }));
}

}  // namespace batchwright
