#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>

#include "daemon/delivery/client_info.h"
#include "daemon/delivery/cursor.h"
#include "formats/formats.h"

namespace batchwright {

/// A subscription's name: the session's, and the number the client chose.
struct SubscriptionKey {
  SessionId session;
  std::uint32_t number = 0;
  friend constexpr auto operator<=>(const SubscriptionKey&, const SubscriptionKey&) = default;
};

/// One client's claim on a feed. Owned by the feed, on the event loop.
struct Subscription {
  Subscription(ClientInfo who, const Cursor& start) : client(std::move(who)), cursor(start) {}

  ClientInfo client;
  Cursor cursor;
  wire::Mode mode = wire::Mode::replica;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t window = 1;
  Step first_step;                ///< As asked for; checked once the epoch is planned.
  std::uint64_t epochs_left = 0;  ///< The one at hand included; 0: without end.
  bool accepted = false;          ///< Subscribed was sent.
  bool finished = false;          ///< Nothing more will be sent; leases may still be out.
  std::uint64_t delivered = 0;
  std::map<std::uint64_t, SlotIndex> leases;  ///< Batches the client holds, by lease.

  bool has_credit() const { return leases.size() < window; }
};

using Subscriptions = std::map<SubscriptionKey, Subscription>;

}  // namespace batchwright
