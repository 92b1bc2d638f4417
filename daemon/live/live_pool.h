#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/live/amounts.h"
#include "daemon/live/batches.h"
#include "daemon/live/claims.h"
#include "daemon/live/events.h"
#include "daemon/live/groups.h"
#include "daemon/live/resume/pool_state.h"
#include "daemon/live/settings.h"
#include "daemon/live/trainers.h"
#include "daemon/live/unit_table.h"
#include "daemon/live/versions.h"
#include "daemon/live/wait_list.h"

namespace batchwright {

/// How a pool is at the moment. Sequences, unless it says otherwise.
struct LivePoolStatus {
  std::uint64_t waiting = 0;  ///< Never delivered.
  std::uint64_t kept = 0;     ///< Delivered, and to be delivered again.
  std::uint64_t bytes = 0;    ///< Of both.
  std::uint64_t kept_bytes = 0;
  std::uint64_t in_flight = 0;  ///< Claimed, or missing from begun groups.
  std::uint64_t begun_groups = 0;
  std::uint64_t missing = 0;  ///< From begun groups.
  std::uint64_t blocked_pushes = 0;
  std::uint64_t waiting_claims = 0;
  std::uint64_t ahead = 0;      ///< Steps.
  std::uint64_t steps = 0;      ///< That were cut.
  std::uint64_t next_step = 0;  ///< What is complete for it, in the unit of a step's budget.
  std::uint64_t busy_lanes = 0;
  std::uint64_t version = 0;
  std::string_view claims_wait_for;  ///< trainer, pool or staleness; empty: none waits.
  /// Since when the first of each waits, in milliseconds; empty: there is none.
  std::optional<std::uint64_t> group_since_ms, push_since_ms, claim_since_ms;
};

/// The pool of one incarnation of a live feed, and all that it decides: what is accepted, what may
/// be claimed, when a step is cut and what it holds. DEFINITIONS.md has the rules.
///
/// A pure state machine: no thread, clock, socket or bytes. The same events at the same times give
/// the same results.
///
/// Threads: one at a time.
class LivePool {
 public:
  /// `settings` as check_live_settings() returned them.
  explicit LivePool(LiveSettings settings);
  /// A pool that goes on where another one was, whose producers and trainers are gone. What is too
  /// stale by now is dropped, which `results` get. Times count from 0 again, those of groups too.
  LivePool(LiveSettings settings, const LivePoolState& state, LiveResults& results);
  LivePool(const LivePool&) = delete;
  LivePool& operator=(const LivePool&) = delete;

  /// Handles an event, and before it whatever runs out at `now_ms` or earlier. Appends what follows
  /// to `results`. Returns the event's number, which answers name: 0, 1, 2 and so on.
  /// `now_ms` never falls.
  std::uint64_t on(const LiveEvent& event, std::uint64_t now_ms, LiveResults& results);

  /// When something happens without an event: the driver sends TimePassed then. Empty: nothing
  /// will.
  std::optional<std::uint64_t> next_deadline() const;

  LivePoolStatus status() const;
  const LiveSettings& settings() const { return settings_; }
  /// Sequences that this producer has claimed and not pushed.
  std::uint64_t claimed_by(ProducerId producer) const { return claims_.left(producer); }
  std::uint64_t steps() const { return trainers_.steps(); }  ///< That were cut.
  /// The first step that may not be trained yet; steps() if there is none.
  std::uint64_t first_ahead() const { return trainers_.first_ahead(); }
  std::uint64_t arrivals() const { return units_.accepted(); }  ///< Sequences that were accepted.
  std::uint64_t largest_group() const { return groups_.largest; }
  /// What lanes are at. Costs O(lanes).
  std::vector<LivePoolState::Lane> busy_lanes() const;
  const VersionsState& versions() const { return versions_.state(); }
  std::uint64_t version() const { return versions_.current(); }
  bool has_ended() const { return ended_; }  ///< No more is accepted.

 private:
  /// What this step has to take so that all the rest can be delivered in time.
  struct Due {
    std::int64_t amount = 0;
    std::uint64_t least_staleness = 0;  ///< Of the units that count towards it.
    bool waits = false;                 ///< Some of it is still to come.
  };
  /// What there is of one staleness.
  struct Level {
    std::uint64_t ready = 0;
    std::uint64_t open = 0;  ///< Still to come; only where steps wait for it.
  };
  using Levels = std::map<std::uint64_t, Level, std::greater<>>;
  /// The pushes that wait, as far as admit() has looked at them and accepted none.
  struct Looked {
    std::uint64_t next = 0;         ///< The first event that it has not looked at.
    bool none_takes_places = true;  ///< No push before it needs a place of its own.
  };

  // Events: live_pool_events.cpp.
  void handle(const LivePush& push);
  void handle(const LiveClaim& claim);
  void handle(const AbandonGroup& abandon);
  void handle(const AbandonNumber& abandon);
  void handle(const ProducerGone& gone);
  void handle(const LiveAdvance& advance);
  void handle(const LiveTake& take);
  void handle(const LiveRelease& released);
  void handle(const TrainerGone& gone);
  void drop_stale();
  void release(const std::vector<SequenceId>& sequences);
  void handle(const LiveEnd& end);
  void handle(const TimePassed&) {}
  void handle(const LimitsChanged& changed);
  void refuse_misfits();
  void drop_beyond_limits();
  void run_out();
  std::string misfit(const LivePush& push) const;
  std::string misfit(const LiveClaim& claim) const;

  // What follows from them: live_pool.cpp.
  void settle();
  bool admit();
  bool grant();
  std::uint64_t growth(const LivePush& push) const;
  bool make_room(std::uint64_t grows, std::uint64_t bytes);
  void accept(std::uint64_t event);
  void join(SequenceId member, const LivePush& push);
  void drop(UnitId id, SequenceState state, std::string_view why);
  void leave(SequenceId id, SequenceState state, std::string_view why);
  void close_group(UnitId id);
  void note_closed(std::uint64_t group, SequenceState state);
  void note_group(std::uint64_t group);
  template <class Change>
  void change_unit(UnitId id, Change change);
  std::uint64_t in_flight(std::int64_t claimed = 0, std::int64_t missing = 0) const;
  std::uint64_t places_kept() const { return units_.fresh().rows + in_flight(); }
  std::string_view held_by(std::uint64_t count) const;
  std::pair<std::optional<std::uint64_t>, std::string_view> first_claim() const;
  bool enough() const;
  bool starved() const;
  std::optional<std::uint64_t> group_of(const std::optional<std::uint64_t>& group) const;
  Amounts amounts() const { return {settings_, units_.lanes(), groups_.largest}; }
  void answer(LiveAnswer::Kind kind, std::uint64_t event, std::uint64_t value, std::string why);
  void report(const LiveSequence& sequence, SequenceState state, std::string_view why);

  // resume/live_pool_resume.cpp
  using Ids = std::unordered_map<std::uint64_t, SequenceId>;  ///< By arrival.
  void resume_sequences(const LivePoolState& state, Ids& ids);
  void resume_places(std::vector<UnitId> units);
  void resume_steps(const LivePoolState& state, const Ids& ids);
  UnitId unit_of(const LivePoolState::Sequence& sequence, std::uint64_t gone);

  // Steps: live_pool_cut.cpp.
  bool cut();
  bool pressed() const;
  std::optional<CutReason> cut_reason(std::uint64_t need) const;
  Levels levels() const;
  Due due() const;
  std::vector<UnitId> due_units(const Due& due) const;
  bool has_row_that_counts(const std::vector<UnitId>& units) const;
  void make_step(const std::vector<UnitId>& units, CutReason why);
  std::vector<std::vector<StepRow>> rows_of(const std::vector<UnitId>& units) const;
  void settle_units(const std::vector<UnitId>& units);
  std::vector<LiveRow> batch_of(const std::vector<StepRow>& rows) const;

  // Their lanes: lanes/live_pool_lanes.cpp.
  bool lanes_wait() const;
  std::vector<std::vector<StepRow>> rows_of_lanes(const std::vector<UnitId>& taken);
  void move_lanes(const std::vector<UnitId>& taken);
  void clear_lanes();

  LiveSettings settings_;
  Versions versions_;
  UnitTable units_;
  KnownGroups groups_;
  Claims claims_;
  WaitList<LivePush> blocked_;
  WaitingClaims asked_;
  Trainers trainers_;
  std::vector<std::uint64_t> accepted_;  ///< Sequences, by producer.
  std::uint64_t events_ = 0;
  std::uint64_t now_ms_ = 0;
  bool ended_ = false;
  std::optional<std::uint64_t> lingers_since_ms_;  ///< A loop waits for a step that may be short.
  Looked looked_;
  LiveResults* results_ = nullptr;  ///< The caller's, within on().
};

/// Has the unit changed outside of all indices, and its claims told of members that it lacks.
template <class Change>
void LivePool::change_unit(UnitId id, Change change) {
  const auto before = static_cast<std::int64_t>(units_.unit(id).sums.missing);
  units_.lift(id);
  change(units_.unit(id));
  units_.place(id);
  const auto after = static_cast<std::int64_t>(units_.unit(id).sums.missing);
  claims_.lack(units_.unit(id).by, after - before);
}

}  // namespace batchwright
