// What a feed says of its memory, and asks other threads about its data: plans, what was appended,
// whether the files are still those that it reads, and whether their file systems answer.

#include <fmt/core.h>
#include <sys/resource.h>

#include <chrono>
#include <utility>

#include "daemon/delivery/feed/feed.h"

namespace batchwright {
namespace {

/// A file system that answers later is told of.
constexpr std::chrono::seconds kAnswersWithin{10};

std::string describe_pages(const Arena& arena) {
  const std::string size =
      arena.pages() == PageKind::small ? "" : fmt::format("huge ({}), ", to_string(arena.pages()));
  if (arena.pinned() != PinState::none) return size + std::string(to_string(arena.pinned()));
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  return fmt::format("{}not locked: this process may lock {} (LimitMEMLOCK=, ulimit -l)", size,
                     in_mib(limit.rlim_cur));
}

DatasetStanding standing_of(const Snapshot& snapshot) {
  DatasetStanding found;
  // Lack of memory is no news of the files.
  static_cast<void>(as_result(ErrorCode::internal, "", [&]() -> Result<void> {
    found = snapshot.standing();
    return {};
  }));
  return found;
}

}  // namespace

DataFacts facts_of(const FeedData& data, const FeedSettings& settings) {
  DataFacts facts;
  facts.fingerprint = data.first_epoch.outline().fingerprint;
  if (data.live) facts.terms = terms_text(settings, settings.live->schema);
  if (!data.snapshot) return facts;
  facts.sequences = data.snapshot->sequences();
  facts.terms = terms_text(settings, row_schema(*data.snapshot, settings.recipe.get()));
  facts.first_draws = fingerprint_of_first_draws(*data.snapshot, settings);
  return facts;
}

void Feed::note_arena() {
  ports_.log.note<Event::arena_reserved>(name(), in_mib(arena().bytes()), settings().slots,
                                         in_mib(arena().slot_bytes()), describe_pages(arena()));
}

void Feed::carry_out(const MakePlan& action) {
  if (settings().follow) return plan_followed(action);
  ports_.planner.plan(data_.snapshot, settings(), action.epoch,
                      loop_.awaited([this, epoch = action.epoch](Result<PlannedEpoch> result) {
                        if (!result) return tell(PlanFailed{epoch, result.error()});
                        tell(PlanReady{std::move(*result), {}, {}, {}});
                      }));
}

/// The dataset is asked on a thread of the feed's own, since its file system may not answer, and
/// other feeds' plans do not wait for that; where threads are few, between two batches.
void Feed::plan_followed(const MakePlan& action) {
  using Made = std::shared_ptr<Result<GrownEpoch>>;
  using Chosen = Result<std::shared_ptr<const Snapshot>>;
  const Epoch epoch = action.epoch;
  Growth growth{data_.dataset,
                data_.snapshot,
                action.data,
                arena().slot_bytes(),
                ports_.memory,
                arena_number().next().has_value(),
                data_.claimed_for_sound()};
  auto done =
      loop_.brought_back([this, action](const Made& made) { grown(action, std::move(*made)); });
  auto make = [growth, own = settings(), epoch, done](const Chosen& chosen) mutable {
    done(std::make_shared<Result<GrownEpoch>>(plan_growing(growth, chosen, own, epoch)));
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
void Feed::grown(const MakePlan& asked, Result<GrownEpoch> result) {
  const auto made = result ? std::optional(result->epoch.outline().fingerprint.data) : asked.data;
  if (core_.is_outdated(asked.epoch, made)) return tell(PlanOutdated{asked.epoch});
  if (!result) return tell(PlanFailed{asked.epoch, result.error()});
  data_.why_not_newer = result->why_not_newer;
  PlanReady ready{std::move(result->epoch), {}, {}, std::move(result->why_not_newer)};
  if (result->larger.arena) ready.slots = generation_of(std::move(result->larger));
  if (result->making) data_.making.push_back(std::move(result->making));
  const auto& snapshot = ready.planned.source->snapshot;
  if (snapshot->generation() > data_.snapshot->generation()) {
    let_go_elsewhere(std::exchange(data_.snapshot, snapshot));
    ready.facts = facts_of(data_, settings());
  }
  tell(std::move(ready));
}

/// There is a number for it: it was made only where there is one.
std::shared_ptr<SlotGeneration> Feed::generation_of(LargerArena larger) {
  larger.memory.release();  // the generation gives it back
  return std::make_shared<SlotGeneration>(*arena_number().next(), std::move(larger.arena),
                                          ports_.memory, name());
}

void Feed::carry_out(const LookAtData&) {
  if (is_live()) return;
  if (std::exchange(data_.looking, true)) return;
  loop_.set(FeedTimer::data, FeedLoop::Time::clock::now() + kAnswersWithin, [this] {
    if (!data_.looking) return;
    ports_.log.note<Event::dataset_silent>(name(), dataset().shards().front().string(),
                                           kAnswersWithin.count());
  });
  ask_standing([this](const DatasetStanding& found) { looked_at_data(found); });
}

/// On a thread of the feed's own, since a file system that does not answer holds it up; where
/// threads are few, between two batches.
void Feed::ask_standing(std::function<void(DatasetStanding)> found) {
  if (is_live()) return loop_.elsewhere([] { return DatasetStanding{}; }, std::move(found));
  // The snapshot goes before anyone is told: what is told may be that it stands in the way.
  auto look = [snapshot = data_.snapshot]() mutable {
    auto standing = standing_of(*snapshot);
    snapshot.reset();
    return standing;
  };
  auto looked = [found = std::move(found)](DatasetStanding standing) {
    found(std::move(standing));
  };
  if (!kFewThreads) return loop_.elsewhere(std::move(look), std::move(looked));
  ports_.planner.run([look = std::move(look),
                      done = loop_.brought_back(std::move(looked))]() mutable { done(look()); });
}

void Feed::looked_at_data(const DatasetStanding& found) {
  data_.looking = false;
  if (failure()) return;
  if (found.standing == DataStanding::overwritten) {
    return tell(DataOverwritten{{ErrorCode::fingerprint_mismatch, found.why}});
  }
  const bool is_news = !found.why.empty() && found.why != data_.standing.why;
  data_.standing = found;
  if (is_news) ports_.log.note<Event::dataset_stale>(name(), found.why);
}

std::string describe(const Blockage& blockage, WaitingTimes::Time now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - blockage.since);
  return fmt::format("the file system of {} has not answered for {} s", blockage.by,
                     seconds.count());
}

BlockageWatch::News BlockageWatch::look(std::optional<Blockage> waits_for, Time now) {
  if (waits_for && now - waits_for->since < kBlocked) waits_for.reset();
  News news;
  const bool is_same = waits_for && blockage_ && waits_for->by == blockage_->by;
  if (is_same) return news;
  news.is_blocked = waits_for.has_value();
  news.is_over = std::exchange(blockage_, std::move(waits_for));
  return news;
}

/// Looks once a second, while something is under way, whether a file system still answers.
void Feed::watch_file_systems() {
  if (loop_.is_set(FeedTimer::blockage)) return;
  const auto begin = WaitingTimes::Time::clock::now();
  loop_.set(FeedTimer::blockage, begin + BlockageWatch::kLook, [this] {
    const auto now = WaitingTimes::Time::clock::now();
    const auto waits_for = waits_for_file_system();
    const auto news = blockage_.look(waits_for, now);
    if (news.is_over) {
      const auto took = std::chrono::duration_cast<std::chrono::seconds>(now - news.is_over->since);
      ports_.log.note<Event::feed_unblocked>(name(), news.is_over->by, took.count());
    }
    if (news.is_blocked) {
      ports_.log.note<Event::feed_blocked>(name(), describe(*blockage_.blockage(), now));
    }
    const bool writes = records_.at_work() || steps_.at_work();
    if (waits_for || writes || slots().count(SlotState::filling) != 0) watch_file_systems();
  });
}

/// The one that it has waited for longest.
std::optional<Blockage> Feed::waits_for_file_system() const {
  std::optional<Blockage> longest;
  const auto consider = [&longest](const std::optional<WaitingTimes::Time>& since, auto by) {
    if (since && (!longest || *since < longest->since)) longest = Blockage{by(), *since};
  };
  if (!is_live()) {
    const auto dataset_name = [this] { return "dataset " + dataset().shards().front().string(); };
    consider(ports_.assembler.waits_for_pages(name()), dataset_name);
    consider(data_.asked_since, dataset_name);
  }
  // A record that is slow blocks nothing before steps wait for it.
  const bool waits_for_record = is_live() && parts().live->waits_for_record();
  for (const auto& at_work :
       {records_.at_work(), waits_for_record ? steps_.at_work() : std::nullopt}) {
    if (at_work) consider(at_work->since, [&at_work] { return at_work->name; });
  }
  return longest;
}

}  // namespace batchwright
