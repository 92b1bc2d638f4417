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
  std::set<Epoch> now;       ///< Somebody stands there and could take a batch.
  std::set<Epoch> stood_in;  ///< Somebody stands there; those of `now` too.
  std::set<Epoch> next;      ///< Somebody comes there next; those of `stood_in` too.
};

/// Which plan is made next, and which one goes for it, so that a feed never keeps more plans than
/// it has room for, in however many epochs its subscriptions stand.
///
/// A plan that is dropped can be made again, and is then the same. So where there are more epochs
/// than room their plans take turns: that which is missing for longest comes next; one that nobody
/// can take a batch of goes first, and then the one that is there for longest, once its turn is
/// over. A turn is at least a second, and at least four times what the plan took to make: at most
/// a fifth of all time goes into planning.
/// Pure bookkeeping, for the event loop.
class PlanTurns {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  static constexpr std::chrono::seconds kLeastTurn{1};

  struct Choice {
    std::optional<Epoch> drop;  ///< Before the plan is made.
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

  std::map<Epoch, std::uint64_t> missing_;  ///< The n-th to be so, of those somebody stands in.
  std::map<Epoch, Turn> turns_;             ///< Of plans that are there.
  std::uint64_t clock_ = 0;                 ///< Of both orders: times may be equal.
};

}  // namespace batchwright
