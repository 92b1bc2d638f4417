#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "formats/formats.h"

namespace batchwright {

/// The epochs that a feed's subscriptions need plans of.
struct PlanNeeds {
  std::set<Epoch> now;       ///< Epochs of subscriptions that could take a batch.
  std::set<Epoch> stood_in;  ///< Epochs of all subscriptions, those of `now` included.
  std::set<Epoch> next;      ///< Epochs that come next, those of `stood_in` included.
};

/// Chooses the plan to make next, and the one to drop for it, so that a feed never keeps more plans
/// than it has room for, however many epochs its subscriptions are in.
///
/// A plan that is dropped can be made again, and is then the same. So where there are more epochs
/// than room their plans take turns: the one missing for longest comes next; a plan without a batch
/// that can be taken is dropped first, then the oldest one, once its turn is over. A turn is at
/// least a second, and at least four times as long as making the plan took: at most a fifth of all
/// time goes into planning. Pure bookkeeping, for the event loop.
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
  };

  std::optional<Epoch> longest_missing(const std::set<Epoch>& epochs,
                                       const std::function<bool(Epoch)>& cannot) const;
  std::optional<Epoch> victim(const PlanNeeds& needs, const std::set<Epoch>& there, bool urgent,
                              Time now) const;
  std::optional<Time> first_end() const;

  std::map<Epoch, std::uint64_t>
      missing_;  ///< Missing plans, numbered in the order in which they were missed.
  std::map<Epoch, Turn> turns_;  ///< Turns of existing plans.
  std::uint64_t clock_ = 0;      ///< Numbers both orders: times may be equal.
};

}  // namespace batchwright
