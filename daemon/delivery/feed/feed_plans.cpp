// The part of Feed that knows which epochs are planned.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/delivery/feed/feed.h"

namespace batchwright {
/// Asks for one plan, if one is missing: of an epoch that a client stands in, or else of the one
/// behind it, so that no epoch begins with a pause. The choice is made anew after each plan, for by
/// then the client that wanted another may be gone.
void Feed::request_plan() {
  if (parts_.plans.is_planning() || failure()) return;
  const PlanNeeds needs = parts_.plan_needs();
  const auto choice = parts_.plans.next(needs, parts_.most_plans(), PlanTurns::Time::clock::now());
  // While one is missing, whose turn it is depends on which clients could take a batch.
  due_.plans = parts_.plans.misses_any(needs);
  if (choice.drop && needs.stood_in.contains(*choice.drop)) {
    ports_.log.note<Event::plans_take_turns>(name(), needs.stood_in.size(), parts_.most_plans());
  }
  if (choice.drop) parts_.note_plans();
  if (choice.plan) return plan(*choice.plan);
  if (choice.look_again) request_plan_at(*choice.look_again);
}

void Feed::request_plan_at(PlanTurns::Time when) {
  if (loop_.due(FeedLoop::Alarm::plans) == when) return;
  loop_.set(FeedLoop::Alarm::plans, when, [this] { request_plan(); });
}

void Feed::plan(Epoch epoch) {
  if (parts_.settings.follow) return plan_followed(epoch);
  ports_.planner.plan(data_.snapshot, parts_.settings, epoch,
                      loop_.awaited([this, epoch](Result<PlannedEpoch> result) {
                        planned(epoch, std::move(result));
                      }));
}

/// The dataset is asked on a thread of the feed's own, since its file system may not answer, and
/// other feeds' plans do not wait for that; where threads are few, between two batches.
void Feed::plan_followed(Epoch epoch) {
  using Made = std::shared_ptr<Result<GrownEpoch>>;
  using Chosen = Result<std::shared_ptr<const Snapshot>>;
  Growth growth{data_.dataset,
                data_.snapshot,
                parts_.plans.data_of(epoch),
                arena().slot_bytes(),
                ports_.memory,
                arena_number().next().has_value(),
                data_.claimed_for_sound()};
  auto done = loop_.brought_back([this, epoch, asked = growth.content](const Made& made) {
    grown(epoch, asked, std::move(*made));
  });
  auto make = [growth, settings = parts_.settings, epoch, done](const Chosen& chosen) mutable {
    done(std::make_shared<Result<GrownEpoch>>(plan_growing(growth, chosen, settings, epoch)));
  };
  if (kFewThreads) {
    return ports_.planner.run(
        [growth, make = std::move(make)]() mutable { make(choose_data(growth)); });
  }
  data_.asked_since = WaitingTimes::Time::clock::now();
  watch_file_systems();
  loop_.elsewhere([growth] { return std::make_shared<Chosen>(choose_data(growth)); },
                  [this, make = std::move(make)](const std::shared_ptr<Chosen>& chosen) {
                    data_.asked_since.reset();
                    ports_.planner.run([make, chosen]() mutable { make(*chosen); });
                  });
}

/// A client may have decided meanwhile that the epoch is of other data: then this plan, or why
/// there is none, is of no use, and its arena goes with it.
void Feed::grown(Epoch epoch, std::optional<std::uint64_t> asked, Result<GrownEpoch> result) {
  if (parts_.life.is_retired())
    return planned(epoch, Error{ErrorCode::disconnected, "the feed has ended"});
  const auto made = result ? std::optional(result->epoch.source->fingerprint.data) : asked;
  if (parts_.plans.is_outdated(epoch, made)) return pump();
  if (!result) return planned(epoch, result.error());
  planned(epoch, take_up(epoch, std::move(*result)));
}

/// New data, and perhaps a new arena: from now on all is assembled there, and what clients hold
/// of the old one stays as it is.
PlannedEpoch Feed::take_up(Epoch epoch, GrownEpoch grown) {
  data_.why_not_newer = grown.why_not_newer;
  if (!grown.why_not_newer.empty()) {
    ports_.log.note<Event::growth_left_out>(name(), epoch.value, data_.snapshot->sequences(),
                                            grown.why_not_newer);
  }
  if (grown.arena) {
    const ArenaNumber number = *arena_number().next();  // it was asked for where there is one
    grown.memory.release();                             // the generation gives it back
    parts_.scheduler.grow(
        std::make_shared<SlotGeneration>(number, std::move(grown.arena), ports_.memory, name()));
    ports_.log.note<Event::arena_grown>(name(), in_mib(arena().bytes()),
                                        in_mib(arena().slot_bytes()));
  }
  if (grown.making) data_.making.push_back(std::move(grown.making));
  const auto& source = *grown.epoch.source;
  parts_.plans.decide(epoch, source.fingerprint.data);
  if (source.snapshot->generation() > data_.snapshot->generation()) {
    let_go_elsewhere(std::exchange(data_.snapshot, source.snapshot));
    parts_.sequences = data_.snapshot->sequences();
    ports_.log.note<Event::dataset_grown>(about(epoch), name(), data_.snapshot->sequences(),
                                          epoch.value);
  }
  return std::move(grown.epoch);
}

void Feed::planned(Epoch epoch, Result<PlannedEpoch> result) {
  due_.plans = true;
  if (parts_.life.is_retired()) return;
  const auto now = PlanTurns::Time::clock::now();
  if (result) {
    const bool is_late = parts_.plans.made(std::move(*result), now);
    if (is_late) ports_.log.note<Event::epoch_planned_late>(name(), epoch.value);
    counters_.add(FeedCounter::epochs_planned);
    parts_.note_plans();
    forget_epochs();
    if (parts_.desk.is_open()) advance_queue();
  } else {
    ports_.log.note<Event::epoch_not_planned>(name(), epoch.value, result.error().message);
    const bool data_gone = result.error().code == ErrorCode::fingerprint_mismatch;
    data_gone ? end_without_data(epoch, result.error())
              : parts_.plans.failed(epoch, result.error(), now);
  }
  pump();
}

/// The dataset no longer has anything of the data that this epoch was decided to be of. Clients
/// that need those are told so; the others get what there is. A queue needs them: what its journal
/// calls done is done of them alone.
void Feed::end_without_data(Epoch epoch, const Error& error) {
  parts_.plans.data_gone(epoch);
  if (parts_.desk.is_open() && parts_.desk.epoch() == epoch) {
    return fail({ErrorCode::fingerprint_mismatch,
                 fmt::format("journal {}: the queue is in epoch {}: {}; change it back, or remove "
                             "the file to begin the queue anew",
                             parts_.desk.journal().path(), epoch.value, error.message)});
  }
  parts_.scheduler.cache().forget_epoch(epoch);
  for (const SubscriptionKey& key : parts_.subscriptions.keys()) {
    const auto one = parts_.subscriptions.edit(key);
    if (one->is_over() || one->cursor.epoch() != epoch) continue;
    if (one->is_bound_to_data()) refuse(*one, error);
  }
}

/// Goes on to the next epoch once each batch of this one is done. The journal's new file waits for
/// its disk elsewhere, for which others do not wait.
void Feed::advance_queue() {
  const auto next = parts_.desk.next_epoch(batches_of(parts_.desk.epoch()));
  if (!next) return;
  const auto plan = parts_.plans.find(*next);  // the journal tells of its data
  if (!plan) return request_plan();
  auto begun = loop_.brought_back([this, epoch = *next](std::shared_ptr<Result<BegunJournal>> to) {
    queue_begun(epoch, std::move(*to));
  });
  auto work = [begin = parts_.desk.begin(*next, plan->fingerprint),
               begun = std::move(begun)](const std::optional<Error>& failure) mutable {
    begun(
        std::make_shared<Result<BegunJournal>>(failure ? Result<BegunJournal>(*failure) : begin()));
  };
  parts_.desk.writer()->run("journal " + parts_.desk.journal().path(), std::move(work));
}

void Feed::queue_begun(Epoch epoch, Result<BegunJournal> begun) {
  if (!written(parts_.desk.begun(epoch, std::move(begun))) || failure()) return;
  ports_.log.note<Event::queue_epoch_done>(name(), epoch.value - 1);
  pump_soon();
}

void Feed::forget_epochs() {
  const PlanNeeds needs = parts_.plan_needs();
  auto before = parts_.plans.epochs().all();
  parts_.scheduler.forget_broken_beside(parts_.plans.keep(needs));
  parts_.note_plans();
  if (!parts_.settings.follow) return;
  if (before.size() != parts_.plans.epochs().numbers().size()) let_go_elsewhere(std::move(before));
  // What is assembled of an epoch goes with the knowledge of what data it is of.
  const auto forgotten = parts_.plans.forget_data([&](Epoch epoch) {
    return needs.next.contains(epoch) || parts_.scheduler.cache().holds_of(epoch);
  });
  for (const Epoch epoch : forgotten) parts_.scheduler.cache().forget_epoch(epoch);
}

}  // namespace batchwright
