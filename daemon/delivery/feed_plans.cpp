// The part of Feed that knows which epochs are planned.

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "daemon/delivery/feed.h"

namespace batchwright {
namespace {

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

/// Who holds as many batches as its window allows can take none now.
PlanNeeds Feed::plan_needs() const {
  PlanNeeds needs{{}, needed_epochs(false), needed_epochs(true)};
  for (const auto& [key, subscription] : subscriptions_) {
    if (subscription.finished || !subscription.has_credit()) continue;
    needs.now.insert(subscription.cursor.epoch());
  }
  return needs;
}

/// Plans that are kept at a time: 8 for the largest datasets, 64 at most.
std::size_t Feed::most_plans() const {
  const std::uint64_t plan = resources_.snapshot->sequences() * kPlanBytesPerSequence;
  return std::clamp<std::uint64_t>(kPlanBytes / plan, 8, 64);
}

/// Asks for one plan, if one is missing: of an epoch somebody stands in, or else of the one behind
/// it, so that no epoch begins with a pause. The choice is made anew after each plan, for by then
/// who wanted another may be gone.
void Feed::request_plan() {
  if (planning_ || failure_) return;
  const auto now = PlanTurns::Time::clock::now();
  const PlanNeeds needs = plan_needs();
  const auto choice = turns_.choose(
      needs, epochs_.numbers(), most_plans(),
      [this, now](Epoch epoch) { return failures_.is_pausing(epoch, now); }, now);
  const auto is_there = [this](Epoch epoch) { return epochs_.find(epoch) != nullptr; };
  // While one is missing, whose turn it is depends on who could take a batch.
  plans_due_ = !std::all_of(needs.next.begin(), needs.next.end(), is_there);
  if (choice.drop) drop_plan(*choice.drop);
  if (choice.plan) return plan(*choice.plan);
  const auto again = failures_.next_try(needs.next, now);
  if (again || choice.look_again) {
    request_plan_at(std::min(again.value_or(PlanTurns::Time::max()),
                             choice.look_again.value_or(PlanTurns::Time::max())));
  }
}

void Feed::request_plan_at(PlanTurns::Time when) {
  if (replan_.expiry() == when) return;  // the timer runs already
  replan_.expires_at(when);
  replan_.async_wait([this, alive = std::weak_ptr(alive_)](const auto& error) {
    if (error || alive.expired()) return;
    replan_.expires_at(PlanTurns::Time::min());
    request_plan();
  });
}

/// It is made again, and then is the same, once somebody needs it.
void Feed::drop_plan(Epoch epoch) {
  if (needed_epochs(false).contains(epoch)) {
    ports_.log.note<Event::plans_take_turns>(name(), needed_epochs(false).size(), most_plans());
  }
  epochs_.forget(epoch);
  note_all(epoch);
}

void Feed::plan(Epoch epoch) {
  planning_ = true;
  if (settings_.follow) return plan_followed(epoch);
  ports_.planner.plan(
      resources_.snapshot, settings_, epoch,
      [this, epoch](Result<PlannedEpoch> result) { planned(epoch, std::move(result)); });
}

void Feed::plan_followed(Epoch epoch) {
  Growth growth{resources_.dataset, resources_.snapshot, contents_.find(epoch),
                arena().slot_bytes(), ports_.memory};
  ports_.planner.run([this, growth = std::move(growth), settings = settings_, epoch] {
    auto result = std::make_shared<Result<GrownEpoch>>(plan_growing(growth, settings, epoch));
    boost::asio::post(ports_.loop, [this, result, epoch, asked = growth.content] {
      grown(epoch, asked, std::move(*result));
    });
  });
}

/// Somebody may have decided meanwhile that the epoch is of other data: then this plan, or why
/// there is none, is of no use, and its arena goes with it.
void Feed::grown(Epoch epoch, std::optional<std::uint64_t> asked, Result<GrownEpoch> result) {
  if (retired_) return planned(epoch, Error{ErrorCode::disconnected, "the feed has ended"});
  const auto decided = contents_.find(epoch);
  const auto made = result ? std::optional(result->epoch.source->fingerprint.data) : asked;
  if (decided && decided != made) {
    planning_ = false;
    return pump();
  }
  if (!result) return planned(epoch, result.error());
  planned(epoch, take_up(epoch, std::move(*result)));
}

/// New data, and perhaps a new arena: from now on all is assembled there, and what clients hold
/// of the old one stays as it is.
PlannedEpoch Feed::take_up(Epoch epoch, GrownEpoch grown) {
  if (!grown.why_not_newer.empty()) {
    ports_.log.note<Event::growth_left_out>(name(), epoch.value, resources_.snapshot->sequences(),
                                            grown.why_not_newer);
  }
  if (grown.arena) {
    const std::uint32_t number = arena_number() + kFeedOfArena + 1;
    grown.memory.release();  // the generation gives it back
    scheduler_.grow(
        std::make_shared<SlotGeneration>(number, std::move(grown.arena), ports_.memory));
    ports_.log.note<Event::arena_grown>(name(), in_mib(arena().bytes()),
                                        in_mib(arena().slot_bytes()));
  }
  const auto& source = *grown.epoch.source;
  contents_.decide(epoch, source.fingerprint.data);
  if (source.snapshot->generation() > resources_.snapshot->generation()) {
    resources_.snapshot = source.snapshot;
    ports_.log.note<Event::dataset_grown>(name(), resources_.snapshot->sequences(), epoch.value);
    publish(wire::EventKind::dataset_changed, epoch);
  }
  return std::move(grown.epoch);
}

void Feed::planned(Epoch epoch, Result<PlannedEpoch> result) {
  planning_ = false;
  plans_due_ = true;
  if (retired_) return;
  if (result) {
    if (failures_.clear(epoch)) ports_.log.note<Event::epoch_planned_late>(name(), epoch.value);
    counters_.add(FeedCounter::epochs_planned);
    plan_seconds_ = result->seconds;
    turns_.made(epoch,
                std::chrono::duration_cast<PlanTurns::Duration>(
                    std::chrono::duration<double>(result->seconds)),
                PlanTurns::Time::clock::now());
    contents_.planned(epoch);
    epochs_.planned(std::move(*result));
    note_all(epoch);
    forget_epochs();
    if (resources_.journal) advance_queue();
  } else {
    ports_.log.note<Event::epoch_not_planned>(name(), epoch.value, result.error().message);
    not_planned(epoch, result.error());
  }
  pump();
}

void Feed::not_planned(Epoch epoch, const Error& error) {
  if (error.code == ErrorCode::fingerprint_mismatch) return data_gone(epoch, error);
  failures_.add(epoch, error, PlanTurns::Time::clock::now());
}

/// The dataset has nothing any more of the data that this epoch was decided to be of. Who needs
/// those is told so; who does not gets what there is. A queue needs them: what its journal calls
/// done is done of them alone.
void Feed::data_gone(Epoch epoch, const Error& error) {
  if (resources_.journal && queue().epoch() == epoch) {
    return fail({ErrorCode::fingerprint_mismatch,
                 fmt::format("journal {}: the queue is in epoch {}: {}; change it back, or remove "
                             "the file to begin the queue anew",
                             resources_.journal->path(), epoch.value, error.message)});
  }
  contents_.forget(epoch);
  scheduler_.cache().forget_epoch(epoch);
  for (auto& [key, subscription] : subscriptions_) {
    if (subscription.finished || subscription.cursor.epoch() != epoch) continue;
    if (subscription.is_bound_to_data()) refuse(key, subscription, error);
  }
}

std::string Feed::reason_without_plan(Epoch epoch) const {
  if (const Error* error = failures_.find(epoch)) {
    return fmt::format("epoch {}, which cannot be planned now and is tried again: {}", epoch.value,
                       error->message);
  }
  const std::size_t epochs = needed_epochs(false).size();
  if (epochs <= most_plans()) return fmt::format("epoch {} is being planned", epoch.value);
  return fmt::format(
      "the turn of epoch {}: clients stand in {} epochs, and {} plans are kept at a "
      "time",
      epoch.value, epochs, most_plans());
}

std::string Feed::planning_trouble() const {
  for (const Epoch epoch : needed_epochs(false)) {
    const Error* error = failures_.find(epoch);
    if (error == nullptr || error->code == ErrorCode::infeasible || epochs_.find(epoch)) continue;
    return fmt::format("epoch {} cannot be planned now: {}", epoch.value, error->message);
  }
  return {};
}

/// Goes on to the next epoch once each batch of this one is done. The journal's new file waits for
/// its disk elsewhere, for which others do not wait.
void Feed::advance_queue() {
  const Epoch epoch = queue().epoch();
  const std::uint64_t steps = steps_of(epoch);
  if (beginning_ || steps == 0 || !queue().over(steps * settings_.plan.world)) return;
  const Epoch next{epoch.value + 1};
  const auto plan = epochs_.find(next);  // the journal tells of its data
  if (!plan) return request_plan();
  beginning_ = true;
  boost::asio::post(*journal_thread_,
                    [this, next, begin = resources_.journal->beginning(next, plan->fingerprint)] {
                      auto begun = std::make_shared<Result<BegunJournal>>(begin());
                      boost::asio::post(ports_.loop, [this, next, begun] {
                        queue_begun(next, std::move(*begun));
                      });
                    });
}

void Feed::queue_begun(Epoch epoch, Result<BegunJournal> begun) {
  beginning_ = false;
  if (failure_ || !written(begun ? Result<void>{} : begun.error())) return;
  resources_.journal->take_up(std::move(*begun));
  work().begin(epoch);
  ports_.log.note<Event::queue_epoch_done>(name(), epoch.value - 1);
  pump_soon();
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
  scheduler_.forget_broken_beside(needed);
  if (settings_.follow) forget_contents();
}

/// What is assembled of an epoch goes with the knowledge of what data it is of.
void Feed::forget_contents() {
  const std::set<Epoch> needed = needed_epochs(true);
  const auto forgotten = contents_.tidy([this, &needed](Epoch epoch) {
    return needed.contains(epoch) || epochs_.find(epoch) || scheduler_.cache().holds_of(epoch);
  });
  for (const Epoch epoch : forgotten) scheduler_.cache().forget_epoch(epoch);
}

}  // namespace batchwright
