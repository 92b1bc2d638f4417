#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "formats/formats.h"

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

/// Chooses the plan to make next, and the one to drop for it, so that a feed never keeps more plans
/// than it has room for, however many epochs its subscriptions are in.
///
/// A plan that is dropped can be made again, and is then the same. So where there are more epochs
/// than room their plans take turns, by session: a session that was served longest ago comes next,
/// and of its epochs one that it reads already, then the one missing for longest. A plan without a
/// batch that can be taken is dropped first, then the oldest one, once its turn is over. A turn is
/// at least a second, and at least four times as long as making the plan took: at most a fifth of
/// all time goes into planning. It is longer by as much for each plan that the session which wants
/// another has more. So a session with many epochs waits for itself. Pure bookkeeping, for the
/// event loop.
class PlanTurns {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  static constexpr std::chrono::seconds kLeastTurn{1};

  struct Choice {
    std::optional<Epoch> drop;  ///< The plan to drop before the next is made.
    std::optional<Epoch> plan;
    std::optional<Time> look_again;  ///< When a turn ends for which another epoch waits.
  };

  /// `there`: the epochs that have a plan. `cannot`: those that are not to be planned now.
  Choice choose(const PlanNeeds& needs, const std::set<Epoch>& there, std::size_t room,
                const std::function<bool(Epoch)>& cannot, Time now);
  /// A plan was made, and took so long.
  void made(Epoch epoch, Duration took, Time now);

 private:
  struct Turn {
    std::uint64_t order = 0;  ///< The smaller, the earlier it began.
    Time ends;
    Duration length;
  };
  /// How many plans the sessions have: of an epoch's, the one with the fewest counts.
  class Riches {
   public:
    Riches(const PlanNeeds& needs, const std::set<Epoch>& there);
    std::size_t of(Epoch epoch) const;

   private:
    const PlanNeeds& needs_;
    std::map<SessionId, std::size_t> plans_;
  };
  static constexpr std::size_t kMostLonger = 64;  ///< Turns by which one may be longer.

  Choice choose_missing(const PlanNeeds& needs, const std::set<Epoch>& there, std::size_t room,
                        const std::function<bool(Epoch)>& cannot, Time now) const;
  std::optional<Epoch> next_missing(const PlanNeeds& needs, const std::set<Epoch>& epochs,
                                    const std::function<bool(Epoch)>& cannot) const;
  std::uint64_t last_served(const PlanNeeds& needs, Epoch epoch) const;
  std::optional<Epoch> victim(const PlanNeeds& needs, const std::set<Epoch>& there, Epoch wanted,
                              Time now) const;
  std::optional<Time> first_end(const PlanNeeds& needs, const std::set<Epoch>& there,
                                Epoch wanted) const;
  static Time end_of(const std::pair<const Epoch, Turn>& entry, const Riches& riches, Epoch wanted);

  std::map<Epoch, std::uint64_t>
      missing_;  ///< Missing plans, numbered in the order in which they were missed.
  std::map<Epoch, Turn> turns_;                ///< Turns of existing plans.
  std::map<SessionId, std::uint64_t> served_;  ///< When a plan was last chosen for a session.
  std::uint64_t clock_ = 0;                    ///< Numbers the orders: times may be equal.
};

}  // namespace batchwright
