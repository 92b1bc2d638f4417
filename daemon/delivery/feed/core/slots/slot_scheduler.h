#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/core/slots/slot_generation.h"
#include "daemon/delivery/feed/core/slots/stragglers.h"
#include "daemon/delivery/feed/core/slots/upcoming_batches.h"

namespace batchwright {

/// What a SlotScheduler goes by.
struct SchedulerLimits {
  unsigned threads = 1;                            ///< That assemble.
  std::chrono::steady_clock::duration patience{};  ///< With stragglers, at once.
};

/// Which batch is assembled next, and in which slot.
///
/// The distance of a batch is how many deliveries lie between it and the nearest cohort that needs
/// it. Slots are filled in the order of distance, and a batch takes the place of the one that is
/// needed latest. What a client waits for comes first, and may take any slot that is not held once
/// no straggler is waited for; what is only due next never pushes out what is due before it.
///
/// It decides and counts along; the caller assembles, and says what became of it. The cohorts are
/// one for all subscriptions that stand at the same place, none of which waits for its plan.
/// Threads: one at a time.
class SlotScheduler {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// A batch that is to be assembled now, in a slot that is its own until it is finished.
  struct Assignment {
    BatchId id;
    SlotRef slot;
    Time::duration waited{};  ///< From when it was to be begun until there was a slot.
  };
  /// A batch that a client waits for.
  struct Demand {
    BatchId id;
    bool follows_plan = true;  ///< The client gets its batches in the plan's order.
  };
  struct Answer {
    std::optional<Assignment> assignment;
    Stragglers::Verdict stragglers;  ///< Where there is none: whether others are waited for.
  };

  SlotScheduler(std::shared_ptr<SlotGeneration> slots, const SchedulerLimits& limits);

  /// Whether a batch is in no slot, and may be assembled as far as is known.
  bool is_missing(const BatchId& id) const { return !cache().find(id) && !broken(id); }
  /// For a batch that is_missing().
  Answer demand(const Demand& wanted, const std::vector<Cohort>& cohorts, Time now);
  /// What is due soonest, as far as slots allow, and until a group() is under way.
  std::vector<Assignment> ahead(const std::vector<Cohort>& cohorts, Time now);

  /// An assignment is complete, or came to nothing: its slot is free, and with an error the batch
  /// is broken, until forget_broken(). A broken batch is met when it is due.
  void finished(const Assignment& done, const AssembledBatch& batch);
  void failed(const Assignment& done, const Error& error);
  void discard(const Assignment& done);
  /// Why a batch cannot be assembled; null: nothing is known against it.
  const Error* broken(const BatchId& id) const;
  /// Forgets all broken batches, or those of epochs that are not needed.
  void forget_broken() { broken_.clear(); }
  void forget_broken_beside(const std::set<Epoch>& needed);

  /// The batches whose pages are to be asked for when `id` is begun, soonest first and each once,
  /// where an epoch has so many batches and the next one so many: those within a round of slots
  /// that are not assembled yet. None once all pages are in place, for the kernel looks up each of
  /// them.
  std::vector<BatchId> pages_wanted_after(const BatchId& id, std::uint64_t batches,
                                          std::uint64_t next_batches);
  /// So many bytes were brought in for these batches since the beginning. More than before: not
  /// all pages are in place.
  void note_brought_in(std::uint64_t bytes) {
    if (std::exchange(brought_in_bytes_, bytes) != bytes) without_faults_ = 0;
  }

  /// Slots with a batch that is not held and that a cohort will get. Of what is further away than
  /// the slots reach, nothing was assembled for its own sake.
  std::uint32_t slots_ahead(const std::vector<Cohort>& cohorts) const;

  const std::shared_ptr<SlotGeneration>& slots() const { return slots_; }
  SlotCache& cache() { return slots_->cache; }
  const SlotCache& cache() const { return slots_->cache; }
  /// From now on all is assembled in these slots.
  void grow(std::shared_ptr<SlotGeneration> slots);
  /// The generations that still have a batch, this one included.
  std::vector<std::shared_ptr<SlotGeneration>> generations() const;

  /// Batches that are assembled ahead together, so that threads are woken for a group and not for
  /// each batch: a quarter of the slots.
  std::uint32_t group() const { return std::max(cache().size() / 4, 1U); }
  /// Whether ahead() begins nothing for now, since enough is under way.
  bool is_busy() const { return filling_ > std::max(threads_, group() - 1); }

  Stragglers& stragglers() { return stragglers_; }
  const Stragglers& stragglers() const { return stragglers_; }

 private:
  std::optional<SlotIndex> take(const BatchId& id, const std::vector<Cohort>& cohorts,
                                const std::vector<std::uint64_t>& kept);
  std::optional<SlotIndex> take_due_in(std::uint64_t away, const BatchId& id,
                                       const std::vector<Cohort>& cohorts);
  std::optional<Assignment> assign(const BatchId& id, std::optional<SlotIndex> slot, Time now);

  std::shared_ptr<SlotGeneration> slots_;  ///< Where batches are assembled.
  std::vector<std::weak_ptr<SlotGeneration>> generations_;
  std::map<BatchId, Error> broken_;
  Stragglers stragglers_;
  unsigned threads_;
  std::uint32_t filling_ = 0;         ///< Assignments under way.
  std::uint64_t without_faults_ = 0;  ///< Batches in a row that were assembled so.
  std::uint64_t brought_in_bytes_ = 0;
  std::set<BatchId> asked_for_;       ///< Batches whose pages were, and that are not begun.
  std::optional<Time> wanted_since_;  ///< When the next assignment was first to be made.
};

}  // namespace batchwright
