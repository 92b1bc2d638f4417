#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/delivery/feed/plans/planner.h"

namespace batchwright {

/// The epochs that a feed's subscriptions need plans of.
struct PlanNeeds {
  std::set<Epoch> now;       ///< Epochs of subscriptions that could take a batch.
  std::set<Epoch> stood_in;  ///< Epochs of all subscriptions, those of `now` included.
  std::set<Epoch> next;      ///< Epochs that come next, those of `stood_in` included.
  std::map<Epoch, std::set<SessionId>> sessions{};  ///< Whose subscriptions stand in an epoch.
  std::set<Epoch>
      read{};  ///< Those of `stood_in` that a subscription has had batches in, or before.
};

/// The plans of a feed: which epochs have one, which gets the next, which one is evicted for it, of
/// which data each epoch is, and why one has no plan.
///
/// It decides and remembers; the caller plans, and says what came of it. One plan is under way at a
/// time. The store never has more plans than may be kept, in however many epochs subscriptions
/// are. A plan that was evicted can be made again, and is then the same. So where there are more
/// epochs than plans, the plans take turns, by session: the session that was served longest ago
/// comes next, and of its epochs one that it reads already, then the one that has been missing for
/// longest. A plan of which no batch can be taken is evicted first, then the oldest one whose turn
/// is over. A turn is at least a second, and at least four times as long as making the plan took:
/// at most a fifth of all time goes into planning. It is longer by as much for each plan that the
/// session which wants another has more, so that a session with many epochs waits for itself.
///
/// A plan is a pure function of data and settings, so an epoch that is infeasible stays so while
/// these do. Any other failure may pass (reader slots that are taken, a folder that is away, a
/// disk's error, lack of memory): the epoch is tried again, after pauses that double.
///
/// The data of an epoch are decided once, by their content fingerprint: by its first plan, by a
/// queue's journal, or by a client that goes on within it. The first decision holds.
/// Threads: one at a time.
class PlanStore {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  static constexpr std::chrono::seconds kLeastTurn{1};
  static constexpr std::chrono::milliseconds kFirstPause{250};
  static constexpr std::chrono::milliseconds kLongestPause{8000};
  /// Failures remembered. The bound is for a client that asks for one impossible epoch after
  /// another.
  static constexpr std::size_t kMostFailures = 1024;
  /// Epochs that are not in use of which the data are remembered: 64 KiB at most.
  static constexpr std::size_t kMostIdle = 1024;

  /// `data_may_grow`: an epoch is planned from the data as they are by then, and one that is
  /// infeasible is tried again, too.
  explicit PlanStore(bool data_may_grow) : data_may_grow_(data_may_grow) {}

  /// The plan that the feed begins with. Nothing, where its epoch was decided to be of other data.
  void begin(const PlannedEpoch& first);
  /// How many plans of so many sequences are kept at a time.
  static std::size_t most_of(std::uint64_t sequences);

  /// Null when it has no plan (yet).
  const PlannedEpoch* find(Epoch epoch) const;
  bool has(Epoch epoch) const { return planned_.contains(epoch); }
  std::uint64_t steps(Epoch epoch) const;  ///< 0: it has no plan.
  std::set<Epoch> numbers() const;
  std::vector<PlannedEpoch> all() const;  ///< In order.
  /// What the latest plan took.
  double seconds() const { return seconds_; }

  /// What is to be done for a plan that is missing.
  struct Choice {
    std::optional<Epoch> evict;  ///< This plan goes for it, and has gone.
    std::optional<Epoch> plan;
    std::optional<Time> look_again;  ///< Without a plan: when to ask again, if ever.
  };
  /// Which plan is to be made now, where `most` are kept; it is under way from here on. Nothing
  /// while one is under way.
  Choice next(const PlanNeeds& needs, std::size_t most, Time now);
  bool is_planning() const { return planning_; }
  /// Whether an epoch that is needed has no plan.
  bool misses_any(const PlanNeeds& needs) const;

  /// A plan has come. True when the epoch had failed before.
  bool made(PlannedEpoch planned, Time now);
  /// There is none, and why.
  void failed(Epoch epoch, const Error& error, Time now);
  /// There is none, for the data that were decided for the epoch are gone: it is of what there is.
  void data_gone(Epoch epoch);
  /// It came, and is of no use.
  void outdated() { planning_ = false; }

  /// Why a subscription in this epoch is refused: it is infeasible, and not to be tried yet. Null:
  /// it can wait.
  const Error* refusal(Epoch epoch, Time now) const;
  /// What a subscription waits for in an epoch without a plan, where subscriptions stand in so many
  /// epochs and `most` plans are kept.
  std::string reason_to_wait(Epoch epoch, std::size_t epochs, std::size_t most) const;
  /// Why one of these epochs cannot be planned now, though that may pass; empty while none is so.
  std::string trouble(const std::set<Epoch>& stood_in) const;

  /// Of which data an epoch is, by their fingerprint, once that is decided.
  std::optional<std::uint64_t> data_of(Epoch epoch) const;
  /// Whether a plan of these data is of no use, for the epoch was decided to be of others.
  bool is_outdated(Epoch epoch, std::optional<std::uint64_t> data) const;
  /// False when other data were decided before.
  bool decide(Epoch epoch, std::uint64_t data);
  /// The epoch is planned again, from other data. The caller knows that no client has any of it.
  void decide_again(Epoch epoch, std::uint64_t data);

  /// Evicts plans that are not needed, into `evicted`. Where none that is needed is there, the one
  /// that was stays, for clients that look on or come back. Returns the epochs that are kept.
  std::set<Epoch> keep(const PlanNeeds& needs, std::vector<PlannedEpoch>& evicted);
  /// Forgets what was decided for epochs that were then not planned, and of others all but the
  /// latest; none that is planned or in use. Returns those that are forgotten.
  std::vector<Epoch> forget_data(const std::function<bool(Epoch)>& in_use);

  /// Notes that a batch was assembled; true when it had been before.
  bool mark_assembled(const BatchId& id);
  /// Notes a sequence that is left out of an epoch; how many different ones are by now.
  std::uint64_t mark_lost(Epoch epoch, Ordinal ordinal);
  /// Notes a corrupt record; true when it was not known before, of any epoch.
  bool mark_corrupt(Ordinal ordinal) { return corrupt_.insert(ordinal).second; }

 private:
  struct Plan {
    PlannedEpoch epoch;
    std::vector<bool> assembled;
    std::set<Ordinal> lost;  ///< No more of them than a feed bears, and a batch.
    std::uint64_t order;     ///< Of its turn: the smaller, the earlier it began. 0: it has not.
    Time turn_ends;
    Duration turn;
  };
  struct Failure {
    Error error;
    std::chrono::milliseconds pause;
    Time again;  ///< When the epoch is to be tried again.
  };
  struct Decided {
    std::uint64_t data = 0;
    bool planned = false;    ///< From these.
    std::uint64_t used = 0;  ///< The larger, the later.
  };
  /// Numbers of sessions: of the plans that they have, or when they were served.
  using BySession = std::map<SessionId, std::uint64_t>;

  void add(PlannedEpoch epoch, std::uint64_t order, Time ends, Duration turn);
  void note(const PlanNeeds& needs, Time now);
  Choice choose(const PlanNeeds& needs, std::size_t most, Time now) const;
  std::optional<Epoch> next_missing(const PlanNeeds& needs, const std::set<Epoch>& epochs,
                                    Time now) const;
  Choice choose_instead(Epoch wanted, const PlanNeeds& needs, Time now) const;
  const Failure* pausing(Epoch epoch, Time now) const;

  bool data_may_grow_;
  std::map<Epoch, Plan> planned_;
  std::map<Epoch, std::uint64_t> missing_;  ///< Numbered in the order in which they were missed.
  BySession served_;                        ///< When a plan was last chosen for a session.
  std::map<Epoch, Failure> failures_;
  std::map<Epoch, Decided> decided_;
  std::set<Ordinal> corrupt_;
  std::uint64_t clock_ = 0;  ///< Numbers what happens in its order: times may be equal.
  bool planning_ = false;
  Epoch last_stood_in_;  ///< The earliest that a client stood in when it was looked at last.
  double seconds_ = 0.0;
};

/// How many sequences of an epoch may be corrupt before its feed fails, by the share that is
/// allowed: one always, so that a small dataset is served on with a bad record, unless it is 0.
std::uint64_t losses_allowed(double share, std::uint64_t sequences);

}  // namespace batchwright
