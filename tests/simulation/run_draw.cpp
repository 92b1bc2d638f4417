// What a run is made of.

#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/cast.h"
#include "tests/simulation/run.h"

namespace batchwright::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kMostWindow = 8;

/// Of what a job's number of ranks may be, so that any of these divides the world.
std::vector<std::uint32_t> sizes_of(std::uint32_t ranks) {
  std::vector<std::uint32_t> sizes{ranks};
  if (ranks > 2) sizes.push_back(ranks / 2);
  return sizes;
}

}  // namespace

FeedSettings Run::draw_feed(Cast& cast) {
  Dice& dice = world_.dice;
  const bool has_queue = dice.percent(45);
  if (dice.percent(55)) {
    cast.ranks = dice.pick<std::uint32_t>({2, 2, 3, 4, 4, 6, 8, 8, 16});
    cast.remote_ranks = dice.percent(25) ? dice.between(1, cast.ranks / 2) : 0;
  }
  if (has_queue) cast.workers = dice.between(1, 4);
  if (cast.ranks == 0 && (!has_queue || dice.percent(30))) cast.trainers = dice.between(1, 4);
  if (cast.ranks != 0 && dice.percent(30)) cast.trainers = 1;
  if (dice.percent(25)) cast.observers = dice.between(1, 2);
  cast.world = cast.ranks != 0 ? cast.ranks * dice.pick<std::uint32_t>({1, 1, 1, 2})
                               : dice.pick<std::uint32_t>({1, 1, 1, 2, 3});
  cast.steps = std::max(2U, dice.between(4, 24) / std::max(1U, cast.world / 2));
  cast.epochs = dice.between(1, 3);
  cast.grows = dice.percent(15);
  cast.is_fair = dice.percent(15);

  FeedSettings feed;
  feed.name = "train";
  feed.plan.order = dice.percent(50) ? Order::sorted : Order::random;
  feed.plan.size = 2;
  feed.plan.world = cast.world;
  feed.plan.seed = dice.below(1000);
  // One each on this host, two for a trainer that evaluates, one that goes round, and a newcomer's.
  const std::uint32_t needed =
      cast.ranks - cast.remote_ranks + 2 * cast.trainers + cast.workers + cast.observers + 2;
  feed.slots = dice.percent(20) ? std::max(needed, suited_slots(cast.world))
                                : needed + dice.below(dice.percent(50) ? 2 : needed + 1);
  feed.max_window = dice.between(2, kMostWindow);
  // Such programs are certain to go on only where all windows fit into the slots.
  cast.holds_many = cast.trainers != 0 && dice.percent(50);
  if (cast.holds_many) feed.slots = std::max(feed.slots, kMostWindow * needed);
  cast.leads = dice.percent(20);
  if (cast.leads) feed.max_lead = dice.between(1, 6);
  feed.poison = dice.percent(20);
  feed.queue_grace = milliseconds(dice.between(50, 10'000));
  feed.queue_attempts = dice.percent(30) ? dice.between(1, 3) : 0;
  feed.assembly_threads = dice.between(1, 4);
  feed.follow = cast.grows;
  if (has_queue) feed.journal = "yes";
  if (dice.percent(30)) feed.ledger = "yes";
  return feed;
}

/// `batches`: that it will take. Its run is to last some seconds.
ProgramTerms Run::habits(const Cast& cast, std::uint64_t batches) {
  Dice& dice = world_.dice;
  ProgramTerms terms;
  terms.world = cast.world;
  terms.epochs = cast.epochs;
  terms.window = dice.between(2, 8);
  terms.work = 2 * dice.time(milliseconds(500), seconds(16)) / std::max<std::uint64_t>(batches, 1);
  terms.keeps_last = dice.percent(70);
  if (!terms.keeps_last && dice.percent(20)) terms.window = 1;
  terms.polls = dice.percent(10);
  terms.foresees = dice.percent(20) ? dice.between(1, 40) : 0;
  terms.follows = cast.grows;
  return terms;
}

Launcher& Run::add(Launcher::Plan plan) {
  launchers_.push_back(std::make_unique<Launcher>(world_, std::move(plan)));
  return *launchers_.back();
}

void Run::draw_programs(const Cast& cast) {
  if (feed_.queue_grace < kLongGrace) machine_.records.expect_late_workers();
  if (cast.ranks != 0) add_job(cast);
  for (std::uint32_t i = 0; i < cast.trainers; ++i) add_trainer(cast, i);
  for (std::uint32_t i = 0; i < cast.workers; ++i) add_worker(cast, i);
  for (std::uint32_t i = 0; i < cast.observers; ++i) add_observer(cast, i);
}

void Run::add_job(const Cast& cast) {
  Dice& dice = world_.dice;
  ProgramTerms terms = habits(cast, cast.steps * cast.epochs * cast.world / cast.ranks);
  terms.mode = wire::Mode::sharded;
  terms.worst_first = dice.percent(15) ? dice.between(1, 3) : 0;
  const bool says_here = dice.percent(50);
  const std::vector<std::uint32_t> sizes = cast.remote_ranks == 0 && dice.percent(50)
                                               ? sizes_of(cast.ranks)
                                               : std::vector<std::uint32_t>{cast.ranks};
  Launcher& job = add({"job", sizes, cast.remote_ranks, false});
  job.launch([this, &job, terms, says_here](std::uint32_t rank, std::uint32_t ranks) {
    ProgramTerms own = terms;
    own.rank = rank;
    own.ranks = ranks;
    const bool remote = rank + job.remote() >= ranks;
    if (says_here) own.ranks_here = remote ? job.remote() : ranks - job.remote();
    return trainer(around_, own, job.saved(), job.barrier());
  });
}

void Run::add_trainer(const Cast& cast, std::uint32_t number) {
  Dice& dice = world_.dice;
  ProgramTerms terms = habits(cast, std::uint64_t{cast.steps} * cast.epochs * cast.world);
  terms.worst_first = dice.percent(15) ? dice.between(1, 3) : 0;
  terms.keeps_list = cast.holds_many && dice.percent(40);
  terms.breaks = dice.percent(25) ? 5 : 0;
  // With max_lead it would wait for itself: its own place is the slowest meanwhile.
  terms.evaluates = cast.holds_many && !cast.leads && dice.percent(50) ? 5 : 0;
  terms.asks_for_messages = dice.percent(10);
  const bool remote = dice.percent(20);
  Launcher& one = add({fmt::format("trainer {}", number), {1}, remote ? 1U : 0U, false});
  one.launch([this, &one, terms](std::uint32_t, std::uint32_t) {
    return trainer(around_, terms, one.saved(), nullptr);
  });
}

void Run::add_worker(const Cast& cast, std::uint32_t number) {
  Dice& dice = world_.dice;
  ProgramTerms terms =
      habits(cast, std::uint64_t{cast.steps} * cast.epochs * cast.world / cast.workers);
  terms.mode = wire::Mode::queue;

  terms.keeps_undone = cast.workers == 1;  // several would wait for each other at an epoch's end
  terms.undone = dice.percent(30) ? dice.between(1, 40) : 0;
  terms.done_early = dice.percent(30) ? dice.between(1, 40) : 0;
  const bool remote = dice.percent(25);
  Launcher& one = add({fmt::format("worker {}", number), {1}, remote ? 1U : 0U, false, true});
  one.launch([this, terms](std::uint32_t, std::uint32_t) -> Process::Main {
    return [this, main = worker(around_, terms)](Process& process) {
      const struct Ended {  // however
        RecordWitness& records;
        ~Ended() { records.worker_ended(); }
      } ended{machine_.records};
      main(process);
    };
  });
}

void Run::add_observer(const Cast& cast, std::uint32_t number) {
  Dice& dice = world_.dice;
  ProgramTerms terms = habits(cast, 50);
  terms.epochs = 0;
  terms.takes_none = !cast.leads && dice.percent(30);
  const bool remote = dice.percent(20);
  Launcher& one = add({fmt::format("observer {}", number), {1}, remote ? 1U : 0U, true});
  one.launch(
      [this, terms](std::uint32_t, std::uint32_t) { return observer(around_, terms, &over_); });
}

void Run::draw_faults(const Cast& cast) {
  if (cast.is_fair) return;
  Dice& dice = world_.dice;
  if (dice.percent(20)) machine_.plan_failures = dice.between(5, 40);
  for (std::uint32_t left = dice.between(1, 8); left != 0; --left) {
    world_.after(microseconds(dice.between(100'000, 19'000'000)), [this] { fault(*cast_); });
  }
}

}  // namespace batchwright::simulation
