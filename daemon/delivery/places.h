#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/subscription_key.h"

namespace batchwright {

/// Where subscriptions stand. Trainers in step stand at the same place, and what one of them needs
/// all do: so what is due is asked of one for all, however many there are. It counts along.
/// Threads: one at a time.
class Places {
 public:
  using Position = std::pair<Epoch, Step>;
  /// Who stands at the same place gets the same batches from here on.
  struct Place {
    bool in_queue = false;
    BatchId next;  ///< Of a queue, the epoch alone.
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    bool goes_on = false;      ///< Beyond its epoch.
    bool left_behind = false;  ///< By those ahead, who wait for it no more.
    SubscriptionKey apart;     ///< Of who is like no other.
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  /// A subscription comes or moves. Without a position, as in a queue, it is no laggard.
  void note(const SubscriptionKey& key, const Place& place,
            const std::optional<Position>& position);
  void forget(const SubscriptionKey& key);
  void clear() { *this = Places(); }

  const std::map<Place, std::set<SubscriptionKey>>& all() const { return places_; }
  /// Changes with the places that anybody stands at.
  std::uint64_t revision() const { return revision_; }
  /// Of all that have a position; empty: none has.
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
