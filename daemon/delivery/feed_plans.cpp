// The part of Feed that knows which epochs are planned.

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/delivery/feed.h"

namespace batchwright {
namespace {

constexpr std::size_t kMaxUnplannable = 1024;

/// Memory for the plans that one feed's subscribers may need at the same time, and what a plan
/// takes of it for each sequence.
constexpr std::uint64_t kPlanBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kPlanBytesPerSequence = 8;

}  // namespace

/// The epochs that subscriptions stand in, and those that they come to after them.
std::set<Epoch> Feed::needed_epochs(bool with_next) const {
  std::set<Epoch> needed;
  for (const auto& [key, subscription] : subscriptions_) {
    if (subscription.finished) continue;
    needed.insert(subscription.cursor.epoch());
    if (!with_next || subscription.epochs_left == 1) continue;
    needed.insert(Epoch{subscription.cursor.epoch().value + 1});
  }
  return needed;
}

/// Different epochs that subscriptions may stand in: 8 for the largest datasets, 64 at most.
std::size_t Feed::most_epochs() const {
  const std::uint64_t plan = resources_.snapshot->sequences() * kPlanBytesPerSequence;
  return std::clamp<std::uint64_t>(kPlanBytes / plan, 8, 64);
}

/// Asks for one plan, if one is missing: of an epoch somebody stands in, or else of the one behind
/// it, so that no epoch begins with a pause. The choice is made anew after each plan, for by then
/// who wanted another may be gone.
void Feed::request_plan() {
  if (planning_) return;
  for (const bool with_next : {false, true}) {
    for (const Epoch epoch : needed_epochs(with_next)) {
      if (epochs_.find(epoch) || unplannable_.contains(epoch)) continue;
      planning_ = true;
      return ports_.planner.plan(
          resources_.snapshot, settings_.plan, epoch,
          [this, epoch](Result<PlannedEpoch> result) { planned(epoch, std::move(result)); });
    }
  }
}

void Feed::planned(Epoch epoch, Result<PlannedEpoch> result) {
  planning_ = false;
  if (result) {
    counters_.add(FeedCounter::epochs_planned);
    epochs_.planned(std::move(*result));
    forget_epochs();
  } else {
    // A plan is a pure function: asking again would fail again. The bound is for who asks for
    // one impossible epoch after the other.
    spdlog::error("feed {}: epoch {}: {}", name(), epoch.value, result.error().message);
    if (unplannable_.size() >= kMaxUnplannable) unplannable_.clear();
    unplannable_.emplace(epoch, result.error());
  }
  if (resources_.journal) advance_queue();
  pump();
}

std::uint64_t Feed::steps_of(Epoch epoch) const {
  const auto found = epochs_.find(epoch);
  return found ? found->plan.steps() : 0;
}

void Feed::forget_epochs() {
  std::set<Epoch> needed = needed_epochs(true);
  if (resources_.journal) needed.insert(queue().epoch());
  if (needed.empty()) needed.insert(first_epoch().epoch);
  epochs_.keep(needed);
  std::erase_if(broken_,
                [&needed](const auto& entry) { return !needed.contains(entry.first.epoch); });
}

}  // namespace batchwright
