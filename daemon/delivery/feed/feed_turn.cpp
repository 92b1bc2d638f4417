// The part of Feed that knows which clients an event concerns, and serves them when something has
// changed.

#include <algorithm>
#include <utility>

#include "daemon/delivery/feed/feed.h"

namespace batchwright {

/// Looks at everyone: for what happens seldom and may concern all.
void Feed::pump() {
  if (failure()) return;
  due_.plans = due_.slots = true;
  serve_all(parts_.subscriptions.keys());
  settle();
}

/// Once for all that happens in this turn of the loop.
void Feed::pump_soon() {
  loop_.soon(FeedLoop::Chore::pump, [this] { pump(); });
}

/// What any event may bring about, once those that it concerns are served. What is ready is handed
/// out first, and only then is assembled what is waited for, and then what comes next. The other
/// way round, a client that waits could take the slot of a batch that is ready for the next in
/// line, and lose its own in turn, without end.
void Feed::settle() {
  if (failure()) return;
  serve_barred();
  if (failure()) return;
  if (std::exchange(due_.epochs, false)) forget_epochs();
  if (std::exchange(due_.plans, false)) request_plan();
  ++due_.turn;
  assemble_demands();
  end_turn();
  // What is due next changes with a queue at any time, and else with places and slots.
  const bool moved = parts_.subscriptions.have_moved();
  if (std::exchange(due_.slots, false) || moved || parts_.desk.is_open()) assemble_ahead();
}

void Feed::settle_soon() {
  loop_.soon(FeedLoop::Chore::settle, [this] { settle(); });
}

/// Each time beginning with another.
void Feed::serve_all(std::vector<SubscriptionKey> keys) {
  if (keys.empty()) return;
  std::rotate(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(due_.turn++ % keys.size()),
              keys.end());
  for (const SubscriptionKey& key : keys) {
    serve(key);
    if (failure()) return;
  }
}

/// Those that could have had a batch if others had held less, or been further.
void Feed::serve_barred() {
  while (const auto keys = parts_.subscriptions.leading_once_slowest_moved()) serve_all(*keys);
  if (!failure()) serve_all(parts_.subscriptions.blocked_once_loosened(due_.slots));
}

}  // namespace batchwright
