#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/core/slots/upcoming_batches.h"
#include "formats/formats.h"

namespace batchwright {

/// The amounts that one delivery of a slot's batch adds to the counters.
struct DeliveredFigures {
  std::uint32_t rows = 0;
  std::uint64_t frames = 0;
  std::uint64_t padded_frames = 0;
  std::uint64_t deliveries = 0;  ///< Deliveries so far.
};

/// An arena of a feed, and the batches in it. A dataset that grows may need larger slots: then
/// another generation takes its place, and this one lives until its last batch is given back.
struct SlotGeneration {
  SlotGeneration(ArenaNumber arena_number, std::unique_ptr<Arena> memory,
                 std::shared_ptr<MemoryBudget> its_budget, std::string its_feed = {})
      : number(arena_number),
        arena(std::move(memory)),
        cache(arena->slots()),
        figures(arena->slots()),
        budget(std::move(its_budget)),
        feed(std::move(its_feed)) {}
  ~SlotGeneration() { budget->give_back(arena->bytes(), feed); }
  SlotGeneration(const SlotGeneration&) = delete;
  SlotGeneration& operator=(const SlotGeneration&) = delete;

  ArenaNumber number;  ///< The arena's number, by which clients request it.
  std::unique_ptr<Arena> arena;
  SlotCache cache;
  std::vector<DeliveredFigures> figures;  ///< Figures of the batch in each slot.
  std::shared_ptr<MemoryBudget> budget;   ///< Gets the arena's bytes back.
  std::string feed;                       ///< The name by which they were taken out of it.
};

/// A slot of one generation, which it keeps alive.
struct SlotRef {
  std::shared_ptr<SlotGeneration> of;
  SlotIndex index;
};

/// The time that others may spend waiting for one straggler: some at once, and in the long run one
/// twentieth of all time, so that a repeated straggler costs them no more than that.
/// Threads: one at a time.
class WaitBudget {
 public:
  using Clock = std::chrono::steady_clock;

  WaitBudget(Clock::duration most, Clock::time_point now) : most_(most), left_(most), as_of_(now) {}

  /// Others begin to wait, or continue to. False when there is no patience left, and they must not.
  bool wait(Clock::time_point now) {
    settle(now);
    return waiting_ = left_ > Clock::duration::zero();
  }
  void stop_waiting(Clock::time_point now) {
    settle(now);
    waiting_ = false;
  }
  bool waiting() const { return waiting_; }

 private:
  static constexpr int kShare = 20;

  void settle(Clock::time_point now) {
    const auto since = now - as_of_;
    left_ += waiting_ ? -since : since / kShare;
    left_ = std::clamp(left_, Clock::duration::zero(), most_);
    as_of_ = now;
  }

  Clock::duration most_;
  Clock::duration left_;
  Clock::time_point as_of_;
  bool waiting_ = false;
};

/// What is known of one subscription as a straggler. It is kept with the subscription.
struct StragglerState {
  std::optional<WaitBudget> budget = {};  ///< Of those that wait for it; empty: none ever did.
  bool held_up = false;                   ///< Others had to wait for it in this turn.
  bool left_behind = false;               ///< Those ahead wait for it no longer.
};

/// Decides which subscriptions those ahead wait for, for a moment, because they are about to fall
/// out of the slots. The caller notes with a subscription that it is left behind, and that it is no
/// longer.
///
/// Trainers that never pause stand still for some milliseconds whenever the system gives their
/// processor to another program. If those ahead went on, the batches in between would leave the
/// slots, and be assembled again for each straggler from then on: it never catches up with others
/// that are as fast as itself. Once patience is at its end, a straggler is left behind, and served
/// on its own until it has caught up.
/// Threads: one at a time.
class Stragglers {
 public:
  using Time = WaitBudget::Clock::time_point;

  struct LeftBehind {
    SubscriptionKey key;
    std::uint64_t batches = 0;  ///< So far is it behind the one that waited.
  };
  struct Verdict {
    bool waits = false;
    std::vector<LeftBehind> left_behind;  ///< Those that are to be left behind from now on.
  };

  /// `slots`: in which all share their batches. `most`: as long as is waited at once.
  Stragglers(std::uint32_t slots, WaitBudget::Clock::duration most) : slots_(slots), most_(most) {}

  /// How many of its next batches a cohort keeps in the slots when one is wanted for `id`: those
  /// that it needs before it comes to `id` itself, if that is not far.
  std::uint64_t keeps_before(const Cohort& cohort, const BatchId& id) const;
  /// Whether one whose next batch is `id` has to wait until others came nearer: those that are half
  /// of the slots behind it, or more, as long as there is patience with one of them.
  Verdict wait_for(const BatchId& id, const std::vector<Cohort>& cohorts, Time now);
  /// Ends a turn: those that held up no other in it cost no patience. Returns those that are left
  /// behind, and near those ahead again: they are left behind no longer.
  std::vector<SubscriptionKey> end_turn(const std::vector<Cohort>& cohorts, Time now);
  void forget(const SubscriptionKey& key) { current_.erase(key); }
  void clear() { current_.clear(); }

  /// Whether none is waited for or left behind.
  bool empty() const { return current_.empty(); }
  /// One that others wait for just now.
  std::optional<SubscriptionKey> awaited() const;

 private:
  /// A subscription that is further away than this shares no batch, whatever the others do.
  std::uint64_t reach() const { return 2 * std::uint64_t{slots_}; }
  bool has_caught_up(const SubscriptionKey& key, const std::vector<Cohort>& cohorts) const;

  std::uint32_t slots_;
  WaitBudget::Clock::duration most_;
  Members current_;  ///< Those that are waited for, or left behind.
};

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
