// The part of Feed that knows which epochs are planned.

#include <algorithm>
#include <boost/asio/post.hpp>
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
  if (resources_.journal && (had_subscriber_ || with_next)) {
    needed.insert(queue().epoch());
    if (with_next) needed.insert(Epoch{queue().epoch().value + 1});
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
      return plan(epoch);
    }
  }
}

void Feed::plan(Epoch epoch) {
  planning_ = true;
  if (settings_.follow) return plan_followed(epoch);
  ports_.planner.plan(
      resources_.snapshot, settings_.plan, epoch,
      [this, epoch](Result<PlannedEpoch> result) { planned(epoch, std::move(result)); });
}

void Feed::plan_followed(Epoch epoch) {
  Growth growth{resources_.dataset, resources_.snapshot, {}, arena().slot_bytes(), ports_.memory};
  const auto decided = contents_.find(epoch);
  if (decided != contents_.end()) growth.content = decided->second;
  ports_.planner.run([this, growth = std::move(growth), settings = settings_, epoch] {
    auto grown = std::make_shared<Result<GrownEpoch>>(plan_growing(growth, settings, epoch));
    boost::asio::post(ports_.loop, [this, grown, epoch] {
      if (retired_) return planned(epoch, Error{ErrorCode::disconnected, "the feed has ended"});
      planned(epoch, take_up(epoch, std::move(*grown)));
    });
  });
}

/// New data, and perhaps a new arena: from now on all is assembled there, and what clients hold
/// of the old one stays as it is.
Result<PlannedEpoch> Feed::take_up(Epoch epoch, Result<GrownEpoch> grown) {
  if (!grown) return grown.error();
  if (!grown->why_not_newer.empty()) {
    ports_.log.note<Event::growth_left_out>(name(), epoch.value, resources_.snapshot->sequences(),
                                            grown->why_not_newer);
  }
  if (grown->arena) {
    std::erase_if(generations_, [](const auto& generation) { return generation.expired(); });
    const std::uint32_t number = slots_->number + kFeedOfArena + 1;
    grown->memory.release();  // the generation gives it back
    slots_ = std::make_shared<SlotGeneration>(number, std::move(grown->arena), ports_.memory);
    generations_.push_back(slots_);
    needy_.reset();
    ports_.log.note<Event::arena_grown>(name(), arena().bytes(), arena().slot_bytes());
  }
  const auto& source = *grown->epoch.source;
  contents_[epoch] = source.fingerprint.data;
  if (source.snapshot->generation() > resources_.snapshot->generation()) {
    resources_.snapshot = source.snapshot;
    ports_.log.note<Event::dataset_grown>(name(), resources_.snapshot->sequences(), epoch.value);
    publish(wire::EventKind::dataset_changed, epoch);
  }
  return std::move(grown->epoch);
}

void Feed::planned(Epoch epoch, Result<PlannedEpoch> result) {
  planning_ = false;
  if (retired_) return;
  if (result) {
    counters_.add(FeedCounter::epochs_planned);
    plan_seconds_ = result->seconds;
    epochs_.planned(std::move(*result));
    forget_epochs();
    if (resources_.journal) advance_queue();
  } else {
    ports_.log.note<Event::epoch_not_planned>(name(), epoch.value, result.error().message);
    not_planned(epoch, result.error());
  }
  pump();
}

/// A plan is a pure function: asking again would fail again. Only data of which there is nothing
/// left are forgotten, for who asks without a fingerprint can have others.
void Feed::not_planned(Epoch epoch, const Error& error) {
  if (settings_.follow && contents_.erase(epoch) > 0) {
    for (auto& [key, subscription] : subscriptions_) {
      const bool waits = !subscription.finished && subscription.cursor.epoch() == epoch;
      if (waits) refuse(key, subscription, error);
    }
    return;
  }
  // The bound is for who asks for one impossible epoch after the other.
  if (unplannable_.size() >= kMaxUnplannable) unplannable_.clear();
  unplannable_.emplace(epoch, error);
}

void Feed::forget_epochs() {
  std::set<Epoch> needed = needed_epochs(true);
  if (const auto stood_in = needed_epochs(false); !stood_in.empty()) {
    last_stood_in_ = *stood_in.begin();
  }
  // Where none is needed that is there, the one that was stays, for whoever looks on or comes back.
  const auto is_there = [this](Epoch epoch) { return epochs_.find(epoch) != nullptr; };
  if (std::none_of(needed.begin(), needed.end(), is_there)) {
    const auto other = is_there(last_stood_in_) ? last_stood_in_ : epochs_.last();
    if (other) needed.insert(*other);
  }
  epochs_.keep(needed);
  std::erase_if(broken_,
                [&needed](const auto& entry) { return !needed.contains(entry.first.epoch); });
}

}  // namespace batchwright
