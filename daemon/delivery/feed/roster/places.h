#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/roster/subscription_key.h"

namespace batchwright {

/// The places of subscriptions. Trainers in step stand at the same place and need the same batches,
/// so one is asked for all, however many there are. The counts are kept up to date.
/// Threads: one at a time.
class Places {
 public:
  using Position = std::pair<Epoch, Step>;
  /// Subscriptions at the same place get the same batches from here on.
  struct Place {
    bool in_queue = false;
    BatchId next;  ///< The next batch; for a queue, only its epoch counts.
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    bool goes_on = false;      ///< It continues beyond its epoch.
    bool left_behind = false;  ///< Those ahead no longer wait for it.
    SubscriptionKey apart;     ///< Set for a subscription unlike any other.
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  /// A subscription comes or moves. Without a position, as in a queue, it is no laggard.
  void note(const SubscriptionKey& key, const Place& place,
            const std::optional<Position>& position);
  void forget(const SubscriptionKey& key);
  void clear() { *this = Places(); }

  const std::map<Place, std::set<SubscriptionKey>>& all() const { return places_; }
  /// Changes with the set of occupied places.
  std::uint64_t revision() const { return revision_; }
  /// The slowest of all positions; empty: there is none.
  std::optional<Position> slowest() const;

 private:
  struct Entry {
    Place place;
    std::optional<Position> position;
  };
  void remove(const SubscriptionKey& key, const Entry& entry);

  std::map<SubscriptionKey, Entry> entries_;
  std::map<Place, std::set<SubscriptionKey>> places_;
  std::map<Position, std::size_t> positions_;
  std::uint64_t revision_ = 0;
};

}  // namespace batchwright
