// The part of Feed that knows whom an event concerns: who is served when something has changed.

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "daemon/delivery/feed.h"

namespace batchwright {

/// Looks at everyone: for what happens seldom and may concern all.
void Feed::pump() {
  if (failure_) return;
  std::vector<SubscriptionKey> keys;
  keys.reserve(subscriptions_.size());
  for (const auto& [key, subscription] : subscriptions_) keys.push_back(key);
  plans_due_ = slots_changed_ = true;
  serve_all(std::move(keys));
  settle();
}

/// Once for all that happens in this turn of the loop.
void Feed::pump_soon() {
  if (std::exchange(pump_posted_, true)) return;
  boost::asio::post(ports_.loop, [this] {
    pump_posted_ = false;
    pump();
  });
}

/// What any event may bring about, once those that it concerns are served. What is ready is handed
/// out first, and only then is assembled what is waited for, and then what comes next. The other
/// way round, one who waits could take the slot of a batch that is ready for the next in line, and
/// be robbed in turn, without end.
void Feed::settle() {
  if (failure_) return;
  serve_barred();
  if (failure_) return;
  if (std::exchange(forget_due_, false)) forget_epochs();
  if (std::exchange(plans_due_, false)) request_plan();
  ++turn_;
  assemble_demands();
  end_turn();
  // What is due next changes with a queue at any time, and else with places and slots.
  const bool moved = std::exchange(seen_places_, places_.revision()) != places_.revision();
  if (std::exchange(slots_changed_, false) || moved || resources_.journal) assemble_ahead();
}

void Feed::settle_soon() {
  if (std::exchange(settle_posted_, true)) return;
  boost::asio::post(ports_.loop, [this] {
    settle_posted_ = false;
    settle();
  });
}

/// Each time beginning with another.
void Feed::serve_all(std::vector<SubscriptionKey> keys) {
  if (keys.empty()) return;
  std::rotate(keys.begin(), keys.begin() + long(turn_++ % keys.size()), keys.end());
  for (const SubscriptionKey& key : keys) {
    serve(key);
    if (failure_) return;
  }
}

/// Those whose next batch this is, and those of whom it may be.
void Feed::serve_waiting_for(const BatchId& id) {
  std::vector<SubscriptionKey> keys;
  for (const BatchId& wanted : {id, any_of(id.epoch)}) {
    const auto found = roster_.wanted().find(wanted);
    if (found == roster_.wanted().end()) continue;
    keys.insert(keys.end(), found->second.all.begin(), found->second.all.end());
  }
  serve_all(std::move(keys));
}

/// Those that could have had a batch if others had held less, or been further.
void Feed::serve_barred() {
  while (seen_slowest_ != places_.slowest()) {
    seen_slowest_ = places_.slowest();
    serve_all({leading_.begin(), leading_.end()});
  }
  if (failure_) return;
  if (barred_.empty() || (seen_loosened_ == roster_.loosened() && !slots_changed_)) return;
  seen_loosened_ = roster_.loosened();
  serve_all({barred_.begin(), barred_.end()});
}

}  // namespace batchwright
