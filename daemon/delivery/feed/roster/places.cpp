#include "daemon/delivery/feed/roster/places.h"

namespace batchwright {

void Places::note(const SubscriptionKey& key, const Place& place,
                  const std::optional<Position>& position) {
  const auto [found, is_new] = entries_.try_emplace(key, Entry{place, position});
  if (!is_new) {
    if (found->second.place == place && found->second.position == position) return;
    remove(key, found->second);
    found->second = {place, position};
  }
  auto& there = places_[place];
  if (there.empty()) ++revision_;
  there.insert(key);
  if (position) ++positions_[*position];
}

void Places::forget(const SubscriptionKey& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  remove(key, found->second);
  entries_.erase(found);
}

void Places::remove(const SubscriptionKey& key, const Entry& entry) {
  const auto place = places_.find(entry.place);
  place->second.erase(key);
  if (place->second.empty()) {
    places_.erase(place);
    ++revision_;
  }
  if (!entry.position) return;
  const auto position = positions_.find(*entry.position);
  if (--position->second == 0) positions_.erase(position);
}

std::optional<Places::Position> Places::slowest() const {
  if (positions_.empty()) return {};
  return positions_.begin()->first;
}

}  // namespace batchwright
