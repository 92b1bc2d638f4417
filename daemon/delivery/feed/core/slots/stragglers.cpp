#include "daemon/delivery/feed/core/slots/stragglers.h"

#include <algorithm>

namespace batchwright {

std::uint64_t Stragglers::keeps_before(const Cohort& cohort, const BatchId& id) const {
  if (cohort.left_behind || !cohort.upcoming.follows_plan()) return 0;
  const auto behind = cohort.upcoming.distance(id);
  return behind && *behind < reach() ? *behind : 0;
}

Stragglers::Verdict Stragglers::wait_for(const BatchId& id, const std::vector<Cohort>& cohorts,
                                         Time now) {
  Verdict verdict;
  for (const Cohort& cohort : cohorts) {
    const std::uint64_t behind = keeps_before(cohort, id);
    if (behind == 0 || 2 * behind < slots_) continue;
    for (const auto& [key, state] : *cohort.at) {
      if (!state->budget) state->budget.emplace(most_, now);
      current_.emplace(key, state);
      if (state->budget->wait(now)) {
        verdict.waits = state->held_up = true;
      } else {
        verdict.left_behind.push_back({key, behind});
      }
    }
  }
  return verdict;
}

std::vector<SubscriptionKey> Stragglers::end_turn(const std::vector<Cohort>& cohorts, Time now) {
  std::vector<SubscriptionKey> caught_up;
  std::erase_if(current_, [&](const auto& entry) {
    const auto& [key, state] = entry;
    const bool awaited = state->budget->waiting() && state->held_up;
    state->held_up = false;
    if (!awaited) state->budget->stop_waiting(now);
    const bool catches_up = state->left_behind && has_caught_up(key, cohorts);
    if (catches_up) caught_up.push_back(key);
    return (!state->left_behind || catches_up) && !state->budget->waiting();
  });
  return caught_up;
}

bool Stragglers::has_caught_up(const SubscriptionKey& key,
                               const std::vector<Cohort>& cohorts) const {
  const auto mine = std::find_if(cohorts.begin(), cohorts.end(),
                                 [&key](const Cohort& cohort) { return cohort.at->contains(key); });
  if (mine == cohorts.end()) return true;
  return std::none_of(cohorts.begin(), cohorts.end(), [&](const Cohort& cohort) {
    if (!cohort.upcoming.follows_plan()) return false;
    const auto behind = mine->upcoming.distance(cohort.upcoming.cursor.next());
    return behind && *behind < reach() && 4 * *behind >= slots_;
  });
}

std::optional<SubscriptionKey> Stragglers::awaited() const {
  const auto found = std::find_if(current_.begin(), current_.end(), [](const auto& entry) {
    return entry.second->budget->waiting();
  });
  return found == current_.end() ? std::nullopt : std::optional(found->first);
}

}  // namespace batchwright
