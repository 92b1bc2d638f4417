// The part of Feed that waits, for a moment, for who is about to fall out of the slots. Trainers
// that never pause stand still for some milliseconds whenever the system gives their processor to
// another. If those ahead went on, the batches in between would leave the slots, and be assembled
// again for each straggler from then on: it never catches up with who is as fast as itself. Who
// does not move within `patience` is left behind, and served on its own.

#include <algorithm>
#include <utility>

#include "daemon/delivery/feed.h"

namespace batchwright {

/// How many of its next batches a subscription keeps in the slots when one is wanted for `id`:
/// those that it needs before it comes to `id` itself, if that is not far.
std::uint64_t Feed::keeps_before(const Subscription& subscription, const BatchId& id) const {
  if (subscription.left_behind || subscription.in_queue()) return 0;
  const auto behind = distance(subscription, id);
  return behind && *behind < 2 * std::uint64_t{slots_->cache.size()} ? *behind : 0;
}

/// Whether the batch that somebody waits for has to wait until others came nearer: those that are
/// half of the slots behind it, or more, as long as there is patience with one of them.
bool Feed::await_stragglers(const BatchId& id) {
  const auto now = WaitingTimes::Time::clock::now();
  std::optional<WaitingTimes::Time> end;
  for (auto& [key, subscription] : subscriptions_) {
    if (!subscription.accepted || subscription.finished) continue;
    if (2 * keeps_before(subscription, id) < std::max(slots_->cache.size(), 2U)) continue;
    if (!subscription.awaited_until) subscription.awaited_until = now + settings_.patience;
    subscription.left_behind = *subscription.awaited_until <= now;
    if (subscription.left_behind) continue;
    end = std::min(end.value_or(*subscription.awaited_until), *subscription.awaited_until);
  }
  if (end) await_until(*end);
  return end.has_value();
}

/// Nothing else may happen until then. Who is waited for later has patience for longer, so that a
/// wait that is under way ends first.
void Feed::await_until(WaitingTimes::Time end) {
  if (std::exchange(awaiting_, true)) return;
  patience_.expires_at(end);
  patience_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    awaiting_ = false;
    pump();
  });
}

/// Who is near those ahead again will be waited for again.
void Feed::note_caught_up() {
  for (auto& [key, subscription] : subscriptions_) {
    if (!subscription.awaited_until || !has_caught_up(subscription)) continue;
    subscription.awaited_until.reset();
    subscription.left_behind = false;
  }
}

bool Feed::has_caught_up(const Subscription& subscription) const {
  return std::all_of(fronts_.begin(), fronts_.end(), [&](const Subscription* front) {
    return 4 * batches_behind(subscription, *front) < slots_->cache.size();
  });
}

}  // namespace batchwright
