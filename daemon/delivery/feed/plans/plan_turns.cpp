#include "daemon/delivery/feed/plans/plan_turns.h"

#include <algorithm>

namespace batchwright {

PlanTurns::Choice PlanTurns::choose(const PlanNeeds& needs, const std::set<Epoch>& there,
                                    std::size_t room, const std::function<bool(Epoch)>& cannot,
                                    Time now) {
  std::erase_if(turns_, [&](const auto& entry) { return !there.contains(entry.first); });
  std::erase_if(missing_, [&](const auto& entry) {
    return there.contains(entry.first) || !needs.stood_in.contains(entry.first);
  });
  for (const Epoch epoch : there) turns_.try_emplace(epoch, Turn{++clock_, now + kLeastTurn});
  for (const Epoch epoch : needs.stood_in) {
    if (there.contains(epoch) || missing_.contains(epoch)) continue;
    missing_.emplace(epoch, ++clock_);
  }
  const bool has_room = there.size() < room;
  for (const auto* epochs : {&needs.now, &needs.stood_in}) {
    const auto missing = longest_missing(*epochs, cannot);
    if (!missing) continue;
    if (has_room) return {{}, missing, {}};
    const bool urgent = epochs == &needs.now;
    if (const auto goes = victim(needs, there, urgent, now)) return {goes, missing, {}};
    return {{}, {}, urgent ? first_end() : std::nullopt};
  }
  for (const Epoch epoch : needs.next) {
    if (has_room && !there.contains(epoch) && !cannot(epoch)) return {{}, epoch, {}};
  }
  return {};
}

void PlanTurns::made(Epoch epoch, Duration took, Time now) {
  missing_.erase(epoch);
  turns_[epoch] = {++clock_, now + std::max<Duration>(kLeastTurn, 4 * took)};
}

std::optional<Epoch> PlanTurns::longest_missing(const std::set<Epoch>& epochs,
                                                const std::function<bool(Epoch)>& cannot) const {
  std::optional<Epoch> longest;
  for (const auto& [epoch, order] : missing_) {
    if (!epochs.contains(epoch) || cannot(epoch)) continue;
    if (!longest || order < missing_.at(*longest)) longest = epoch;
  }
  return longest;
}

/// Drops first a plan of an epoch without subscriptions, the latest of them; then, for an epoch
/// that can deliver now, one that cannot; then the oldest of those whose turn is over.
std::optional<Epoch> PlanTurns::victim(const PlanNeeds& needs, const std::set<Epoch>& there,
                                       bool urgent, Time now) const {
  for (auto epoch = there.rbegin(); epoch != there.rend(); ++epoch) {
    if (!needs.stood_in.contains(*epoch)) return *epoch;
  }
  if (!urgent) return {};
  for (const Epoch epoch : there) {
    if (!needs.now.contains(epoch)) return epoch;
  }
  const std::pair<const Epoch, Turn>* first = nullptr;
  for (const auto& entry : turns_) {
    if (entry.second.ends > now) continue;
    if (first == nullptr || entry.second.order < first->second.order) first = &entry;
  }
  return first == nullptr ? std::nullopt : std::optional(first->first);
}

std::optional<PlanTurns::Time> PlanTurns::first_end() const {
  std::optional<Time> first;
  for (const auto& [epoch, turn] : turns_) first = first ? std::min(*first, turn.ends) : turn.ends;
  return first;
}

}  // namespace batchwright
