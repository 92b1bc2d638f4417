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
  for (const Epoch epoch : there)
    turns_.try_emplace(epoch, Turn{++clock_, now + kLeastTurn, kLeastTurn});
  for (const Epoch epoch : needs.stood_in) {
    if (there.contains(epoch) || missing_.contains(epoch)) continue;
    missing_.emplace(epoch, ++clock_);
  }
  std::set<SessionId> here;
  for (const auto& [epoch, sessions] : needs.sessions)
    here.insert(sessions.begin(), sessions.end());
  std::erase_if(served_, [&](const auto& entry) { return !here.contains(entry.first); });
  Choice choice = choose_missing(needs, there, room, cannot, now);
  if (!choice.plan) return choice;
  if (const auto sessions = needs.sessions.find(*choice.plan); sessions != needs.sessions.end()) {
    ++clock_;
    for (const SessionId session : sessions->second) served_[session] = clock_;
  }
  return choice;
}

PlanTurns::Choice PlanTurns::choose_missing(const PlanNeeds& needs, const std::set<Epoch>& there,
                                            std::size_t room,
                                            const std::function<bool(Epoch)>& cannot,
                                            Time now) const {
  const bool has_room = there.size() < room;
  for (const auto* epochs : {&needs.now, &needs.stood_in}) {
    const auto missing = next_missing(needs, *epochs, cannot);
    if (!missing) continue;
    if (has_room) return {{}, missing, {}};
    if (const auto goes = victim(needs, there, *missing, now)) return {goes, missing, {}};
    const bool urgent = epochs == &needs.now;
    return {{}, {}, urgent ? first_end(needs, there, *missing) : std::nullopt};
  }
  for (const Epoch epoch : needs.next) {
    if (has_room && !there.contains(epoch) && !cannot(epoch)) return {{}, epoch, {}};
  }
  return {};
}

void PlanTurns::made(Epoch epoch, Duration took, Time now) {
  missing_.erase(epoch);
  const auto length = std::max<Duration>(kLeastTurn, 4 * took);
  turns_[epoch] = {++clock_, now + length, length};
}

std::optional<Epoch> PlanTurns::next_missing(const PlanNeeds& needs, const std::set<Epoch>& epochs,
                                             const std::function<bool(Epoch)>& cannot) const {
  using Rank = std::tuple<std::uint64_t, bool, std::uint64_t>;
  std::optional<Epoch> next;
  Rank best;
  for (const auto& [epoch, order] : missing_) {
    if (!epochs.contains(epoch) || cannot(epoch)) continue;
    const Rank rank{last_served(needs, epoch), !needs.read.contains(epoch), order};
    if (next && best < rank) continue;
    next = epoch;
    best = rank;
  }
  return next;
}

/// When the one of an epoch's sessions was served that was served longest ago.
std::uint64_t PlanTurns::last_served(const PlanNeeds& needs, Epoch epoch) const {
  const auto sessions = needs.sessions.find(epoch);
  if (sessions == needs.sessions.end()) return 0;
  std::uint64_t first = UINT64_MAX;
  for (const SessionId session : sessions->second) {
    const auto served = served_.find(session);
    first = std::min(first, served == served_.end() ? 0 : served->second);
  }
  return first;
}

PlanTurns::Riches::Riches(const PlanNeeds& needs, const std::set<Epoch>& there) : needs_(needs) {
  for (const auto& [epoch, sessions] : needs.sessions) {
    if (!there.contains(epoch)) continue;
    for (const SessionId session : sessions) ++plans_[session];
  }
}

std::size_t PlanTurns::Riches::of(Epoch epoch) const {
  const auto sessions = needs_.sessions.find(epoch);
  if (sessions == needs_.sessions.end()) return 0;
  std::size_t fewest = SIZE_MAX;
  for (const SessionId session : sessions->second) {
    const auto plans = plans_.find(session);
    fewest = std::min(fewest, plans == plans_.end() ? 0 : plans->second);
  }
  return fewest;
}

/// Drops first a plan of an epoch without subscriptions, the latest of them; then, for an epoch
/// that can deliver now, one that cannot; then the oldest of those whose turn is over.
std::optional<Epoch> PlanTurns::victim(const PlanNeeds& needs, const std::set<Epoch>& there,
                                       Epoch wanted, Time now) const {
  for (auto epoch = there.rbegin(); epoch != there.rend(); ++epoch) {
    if (!needs.stood_in.contains(*epoch)) return *epoch;
  }
  if (!needs.now.contains(wanted)) return {};
  for (const Epoch epoch : there) {
    if (!needs.now.contains(epoch)) return epoch;
  }
  const Riches riches(needs, there);
  const std::pair<const Epoch, Turn>* first = nullptr;
  for (const auto& entry : turns_) {
    if (end_of(entry, riches, wanted) > now) continue;
    if (first == nullptr || entry.second.order < first->second.order) first = &entry;
  }
  return first == nullptr ? std::nullopt : std::optional(first->first);
}

std::optional<PlanTurns::Time> PlanTurns::first_end(const PlanNeeds& needs,
                                                    const std::set<Epoch>& there,
                                                    Epoch wanted) const {
  const Riches riches(needs, there);
  std::optional<Time> first;
  for (const auto& entry : turns_) {
    const Time end = end_of(entry, riches, wanted);
    first = first ? std::min(*first, end) : end;
  }
  return first;
}

PlanTurns::Time PlanTurns::end_of(const std::pair<const Epoch, Turn>& entry, const Riches& riches,
                                  Epoch wanted) {
  const std::size_t own = riches.of(entry.first);
  const std::size_t other = riches.of(wanted);
  const std::size_t longer = other > own ? std::min(other - own, kMostLonger) : 0;
  return entry.second.ends + static_cast<Duration::rep>(longer) * entry.second.length;
}

}  // namespace batchwright
