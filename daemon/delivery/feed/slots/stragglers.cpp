#include "daemon/delivery/feed/slots/stragglers.h"

#include <algorithm>

namespace batchwright {

std::uint64_t Stragglers::keeps_before(const Front& front, const BatchId& id) const {
  if (front.left_behind || !front.itinerary.follows_plan()) return 0;
  const auto behind = front.itinerary.distance(id);
  return behind && *behind < reach() ? *behind : 0;
}

Stragglers::Verdict Stragglers::wait_for(const BatchId& id, const std::vector<Front>& fronts,
                                         Time now) {
  Verdict verdict;
  for (const Front& front : fronts) {
    const std::uint64_t behind = keeps_before(front, id);
    if (behind == 0 || 2 * behind < slots_) continue;
    for (const SubscriptionKey& key : *front.at) {
      Straggler& one = known_.try_emplace(key, Straggler{Patience(most_, now)}).first->second;
      current_.insert(key);
      if (one.patience.wait(now)) {
        verdict.waits = one.held_up = true;
      } else {
        one.left_behind = true;
        verdict.left_behind.push_back({key, behind});
      }
    }
  }
  return verdict;
}

std::vector<SubscriptionKey> Stragglers::end_turn(const std::vector<Front>& fronts, Time now) {
  std::vector<SubscriptionKey> caught_up;
  std::erase_if(current_, [&](const SubscriptionKey& key) {
    Straggler& one = known_.at(key);
    const bool awaited = one.patience.waiting() && one.held_up;
    one.held_up = false;
    if (!awaited) one.patience.stop_waiting(now);
    if (one.left_behind && has_caught_up(key, fronts)) {
      one.left_behind = false;
      caught_up.push_back(key);
    }
    return !one.left_behind && !one.patience.waiting();
  });
  return caught_up;
}

bool Stragglers::has_caught_up(const SubscriptionKey& key, const std::vector<Front>& fronts) const {
  const auto mine = std::find_if(fronts.begin(), fronts.end(),
                                 [&key](const Front& front) { return front.at->contains(key); });
  if (mine == fronts.end()) return true;
  return std::none_of(fronts.begin(), fronts.end(), [&](const Front& front) {
    if (!front.itinerary.follows_plan()) return false;
    const auto behind = mine->itinerary.distance(front.itinerary.cursor.next());
    return behind && *behind < reach() && 4 * *behind >= slots_;
  });
}

void Stragglers::forget(const SubscriptionKey& key) {
  known_.erase(key);
  current_.erase(key);
}

void Stragglers::clear() {
  known_.clear();
  current_.clear();
}

bool Stragglers::is_left_behind(const SubscriptionKey& key) const {
  const auto found = known_.find(key);
  return found != known_.end() && found->second.left_behind;
}

std::optional<SubscriptionKey> Stragglers::awaited() const {
  const auto found = std::find_if(
      current_.begin(), current_.end(),
      [this](const SubscriptionKey& key) { return known_.at(key).patience.waiting(); });
  return found == current_.end() ? std::nullopt : std::optional(*found);
}

}  // namespace batchwright
