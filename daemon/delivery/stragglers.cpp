// The part of Feed that waits, for a moment, for who is about to fall out of the slots. Trainers
// that never pause stand still for some milliseconds whenever the system gives their processor to
// another. If those ahead went on, the batches in between would leave the slots, and be assembled
// again for each straggler from then on: it never catches up with who is as fast as itself. Once
// patience is at its end, a straggler is left behind, and served on its own.

#include <algorithm>
#include <chrono>
#include <utility>

#include "daemon/delivery/feed.h"

namespace batchwright {
namespace {

/// Between two looks whether there is still patience, where nothing else happens.
constexpr std::chrono::milliseconds kBetweenLooks{5};

}  // namespace

/// How many of its next batches a subscription keeps in the slots when one is wanted for `id`:
/// those that it needs before it comes to `id` itself, if that is not far.
std::uint64_t Feed::keeps_before(const Subscription& subscription, const BatchId& id) const {
  if (subscription.left_behind || !subscription.follows_plan()) return 0;
  const auto behind = distance(subscription, id);
  return behind && *behind < reach() ? *behind : 0;
}

/// Who is further away than this shares no batch, whatever the others do.
std::uint64_t Feed::reach() const { return 2 * std::uint64_t{slots_->cache.size()}; }

/// Whether `ahead`, whose next batch is `id`, has to wait until others came nearer: those that are
/// half of the slots behind it, or more, as long as there is patience with one of them.
bool Feed::await_stragglers(const Subscription& ahead, const BatchId& id) {
  if (!ahead.follows_plan() || !slots_->cache.has_idle()) return false;
  const auto now = Patience::Clock::now();
  bool waits = false;
  for (auto& [key, subscription] : subscriptions_) {
    if (!subscription.accepted || subscription.finished) continue;
    const std::uint64_t behind = keeps_before(subscription, id);
    if (behind == 0 || 2 * behind < slots_->cache.size()) continue;
    if (!subscription.patience) subscription.patience.emplace(settings_.patience, now);
    if (subscription.patience->wait(now)) {
      subscription.awaited_in = turn_;
      stragglers_.insert(key);
      waits = true;
    } else {
      subscription.left_behind = true;
      stragglers_.insert(key);
      note(key, subscription);
      ports_.log.note<Event::left_behind>(name(), describe(subscription.client), behind);
    }
  }
  if (waits) look_again();
  return waits;
}

/// Nothing else may happen until patience ends.
void Feed::look_again() {
  if (std::exchange(looking_again_, true)) return;
  patience_.expires_after(kBetweenLooks);
  patience_.async_wait([this, alive = std::weak_ptr(alive_)](const auto& error) {
    if (error || alive.expired()) return;
    looking_again_ = false;
    settle();
  });
}

/// Whom nobody had to wait for in this turn, and who is near those ahead again.
void Feed::note_stragglers() {
  std::erase_if(stragglers_, [this](const SubscriptionKey& key) {
    Subscription& subscription = subscriptions_.at(key);
    const bool awaited = subscription.patience->waiting() && subscription.awaited_in == turn_;
    if (!awaited) subscription.patience->stop_waiting(Patience::Clock::now());
    if (subscription.left_behind && has_caught_up(subscription)) {
      subscription.left_behind = false;
      note(key, subscription);
    }
    return !subscription.left_behind && !subscription.patience->waiting();
  });
}

bool Feed::has_caught_up(const Subscription& subscription) const {
  return std::none_of(fronts_.begin(), fronts_.end(), [&](const Subscription* front) {
    if (!front->follows_plan()) return false;
    const auto behind = distance(subscription, front->cursor.next());
    return behind && *behind < reach() && 4 * *behind >= slots_->cache.size();
  });
}

}  // namespace batchwright
