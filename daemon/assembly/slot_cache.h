#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// Names a batch within its feed.
struct BatchId {
  Epoch epoch;
  BatchIndex index;
  friend constexpr auto operator<=>(const BatchId&, const BatchId&) = default;
};

/// The place of a finished batch, in bytes.
struct Extent {
  std::size_t offset = 0;  ///< Distance from the arena's first byte.
  std::size_t size = 0;
};

enum class SlotState : std::uint8_t { free, filling, ready };

/// A cache of assembled batches: the batch in each slot, and the number of its holders.
///
/// A slot goes free -> filling -> ready, and from ready back to filling (another batch) once no
/// client holds it. The batch that is needed latest goes first (Belady 1966), for the plan says
/// when each will be needed; of several that are no longer needed, the least recently used one. A
/// call that the slot's state does not allow breaks an invariant: must() throws.
/// Threads: the event loop only, so it needs no lock.
class SlotCache {
 public:
  /// How many batches lie before a batch is needed, for take(). Empty: it must keep its slot.
  using Need = std::function<std::optional<std::uint64_t>(const BatchId&)>;
  static constexpr std::uint64_t kNeverNeeded = UINT64_MAX;

  explicit SlotCache(std::uint32_t slots);

  /// The slot of this batch, filling or ready.
  std::optional<SlotIndex> find(const BatchId& id) const;
  SlotState state(SlotIndex slot) const;
  /// The batch of a ready slot.
  const Extent& extent(SlotIndex slot) const;

  /// A slot for `id`, now filling: a free one, otherwise one that is ready, that no client holds
  /// and that `need` lets go. Empty when there is none: back pressure.
  std::optional<SlotIndex> take(const BatchId& id, const Need& need);
  /// The batch of a filling slot is complete.
  void filled(SlotIndex slot, const Extent& extent);
  /// The batch of a filling slot could not be made; the slot is free.
  void abandon(SlotIndex slot);

  /// One more, one fewer holder of a ready slot. release() says whether it was the last.
  void hold(SlotIndex slot);
  bool release(SlotIndex slot);
  /// Forgets the batch of a ready slot that no client holds. The slot counts as filling, so that
  /// its bytes can be overwritten in peace, until abandon() frees it.
  void retire(SlotIndex slot);

  /// Whether a slot is ready and no client holds it.
  bool has_idle() const;
  /// Whether any client holds a batch of this epoch.
  bool holds_of(Epoch epoch) const;
  /// Forgets the batches of an epoch of which none is held. Those that are filling stay.
  void forget_epoch(Epoch epoch);

  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t count(SlotState state) const;
  bool is_held(SlotIndex slot) const { return slots_.at(slot.value).holders != 0; }
  std::uint32_t held() const { return held_; }  ///< Ready slots with at least one holder.

 private:
  struct Slot {
    SlotState state = SlotState::free;
    BatchId id;
    Extent extent;
    std::uint32_t holders = 0;
    std::uint64_t last_use = 0;
  };

  /// Batches that are looked up together lie beside each other.
  struct HashBatch {
    std::size_t operator()(const BatchId& id) const {
      return id.index.value + (id.epoch.value << 32U);
    }
  };

  std::optional<SlotIndex> choose(const Need& need) const;
  void forget(SlotIndex slot);

  std::vector<Slot> slots_;
  std::unordered_map<BatchId, SlotIndex, HashBatch> by_id_;
  std::uint32_t held_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace batchwright
