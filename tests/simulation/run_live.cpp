// What a run with a live feed is made of.

#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/cast.h"
#include "tests/simulation/run.h"

namespace batchwright::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kFrameBytes = 64;
constexpr std::uint32_t kWidestWindow = 8;
/// A run makes no more.
constexpr std::uint64_t kMostSequences = 600;

/// Has a step of single sequences be one of lanes, if those go with the rest.
void draw_lanes(Dice& dice, LiveSettings& pool, std::uint32_t& together) {
  const bool in_order = pool.reuse == 1 && pool.select == LiveSelect::fifo;
  if (pool.step_unit != StepUnit::sequences || pool.groups != LiveGroups::none || !in_order) return;
  pool.step_unit = StepUnit::lanes;
  pool.step -= pool.step % pool.world;
  pool.unroll = dice.pick<std::uint64_t>({1, 7, 20});
  pool.cut = Cut::fixed;
  together = 1;  // which a rank's lanes take at once
}

}  // namespace

/// A pool that a step of its units fits into, and what producers make together.
LiveSettings Run::draw_pool(Cast& cast) {
  Dice& dice = world_.dice;
  LiveSettings pool;
  pool.world = cast.world;
  pool.seed = dice.below(1000);
  pool.frame_bytes = {kFrameBytes};
  pool.max_length = dice.pick<std::uint32_t>({1, 8, 40});
  pool.groups = dice.pick<LiveGroups>(
      {LiveGroups::none, LiveGroups::none, LiveGroups::step, LiveGroups::batch});
  const bool has_groups = pool.groups != LiveGroups::none;
  const std::uint32_t members = has_groups ? dice.between(2, 4) : 1;
  const std::uint64_t parts = pool.groups == LiveGroups::batch ? cast.world : 1;
  std::uint64_t rows = 0;  // of a step
  if (has_groups && dice.percent(40)) {
    pool.step_unit = StepUnit::groups;
    pool.step = parts * dice.between(1, 3);
    rows = pool.step * members;
  } else if (dice.percent(35)) {
    pool.step_unit = StepUnit::frames;
    pool.step = std::max(parts * members, pool.world) * pool.max_length * dice.between(1, 3);
    rows = pool.step * 2 / (pool.max_length + 1) + 1;
  } else {
    pool.step = std::max<std::uint64_t>(parts * members, cast.world) * dice.between(1, 3);
    rows = pool.step;
  }
  cast.together =
      has_groups
          ? members
          : dice.between(1, static_cast<std::uint32_t>(std::clamp<std::uint64_t>(rows / 2, 1, 4)));
  const std::uint64_t least = std::max(rows, pool.world * members) + cast.together + cast.world;
  pool.pool_sequences = least * dice.between(1, 4);
  const std::uint64_t bytes = pool.max_length * kFrameBytes;
  pool.pool_bytes = std::max<std::uint64_t>(pool.pool_sequences * bytes, pool.step * kFrameBytes);
  const bool is_tight = !has_groups && dice.percent(20);  // an incomplete group may fill such a one
  if (is_tight) {
    pool.pool_bytes = std::max(least * bytes, pool.step * kFrameBytes);
    pool.pool_sequences *= 4;
  }
  pool.cut = dice.pick<Cut>({Cut::fixed, Cut::dynamic, Cut::quadratic});
  pool.quadratic_scale = 100;
  pool.window = dice.between(1, 4);
  if (dice.percent(60)) pool.linger_ms = dice.below(2000);
  if (dice.percent(25)) pool.group_timeout_ms = dice.percent(50) ? dice.between(20, 500) : 3000;
  if (dice.percent(15)) pool.claim_timeout_ms = dice.between(1000, 5000);
  if (dice.percent(50)) pool.late_groups = LateGroups::abandon;
  const std::uint32_t draw = dice.below(100);
  if (draw < 75) pool.max_staleness = dice.between(0, 4);
  if (draw >= 45) pool.stale = StalePolicy::drop;
  if (draw >= 60 && draw < 75) pool.stale = StalePolicy::zero;
  if (dice.percent(15)) pool.zero_most_stale = 1;
  if (!has_groups && dice.percent(15)) {
    pool.reuse = dice.between(2, 3);
    cast.together = 1;  // of what is fresh in a step
  }
  if (pool.stale != StalePolicy::pace && dice.percent(15)) pool.select = LiveSelect::uniform;
  if (pool.select == LiveSelect::uniform) pool.reuse = 2;
  if (dice.percent(25)) draw_lanes(dice, pool, cast.together);
  auto checked = check_live_settings(pool);
  if (!checked) throw Violation(checked.error().message);
  return *checked;
}

FeedSettings Run::draw_live_feed(Cast& cast) {
  Dice& dice = world_.dice;
  cast.live = true;
  const std::uint32_t who = dice.below(100);
  if (who < 45) {
    cast.ranks = dice.pick<std::uint32_t>({2, 2, 3, 4, 4, 8});
    cast.remote_ranks = dice.percent(20) ? dice.between(1, cast.ranks / 2) : 0;
  } else if (who < 85) {
    cast.trainers = 1;
  } else {
    cast.workers = dice.between(1, 3);
  }
  // Steps that another asks for sooner than the workers are kept up to the bytes of the pool alone.
  if (cast.workers == 0 && dice.percent(30)) cast.observers = dice.between(1, 2);
  cast.world = cast.ranks != 0 ? cast.ranks * dice.pick<std::uint32_t>({1, 1, 1, 2})
                               : dice.pick<std::uint32_t>({1, 1, 1, 2, 3});
  cast.producers = dice.between(1, 5);
  cast.is_fair = dice.percent(25);
  cast.claims = dice.percent(70);
  cast.has_quotas = cast.workers != 0 || dice.percent(40);

  FeedSettings feed;
  feed.name = "train";
  feed.live.emplace();
  feed.live->pool = draw_pool(cast);
  feed.live->schema.fields = {{"x", FieldKind::primary, DType::int32, {16}, {}, 0}};
  feed.plan.world = cast.world;
  const LiveSettings& pool = feed.live->pool;
  // What one has claimed may keep another's group from its members (README.md, "Limits").
  cast.mixes = pool.groups == LiveGroups::none && dice.percent(20);
  const bool in_frames = pool.step_unit == StepUnit::frames;
  const std::uint64_t in_groups = pool.step_unit == StepUnit::groups ? cast.together : 1;
  const std::uint64_t rows =
      in_frames ? pool.step * 2 / (pool.max_length + 1) + 1 : pool.step * in_groups;
  cast.steps = std::clamp<std::uint32_t>(static_cast<std::uint32_t>(kMostSequences / rows), 3,
                                         dice.between(5, 40));
  cast.sequences = cast.steps * rows;
  const std::uint32_t needed =
      cast.ranks - cast.remote_ranks + 2 * cast.trainers + cast.workers + cast.observers + 2;
  feed.slots = kWidestWindow * needed;
  feed.max_window = dice.between(2, kWidestWindow);
  feed.poison = dice.percent(20);
  feed.queue_grace = milliseconds(dice.between(50, 10'000));
  feed.assembly_threads = dice.between(1, 4);
  if (dice.percent(40)) feed.live->spool = "spool";
  return feed;
}

ProgramTerms Run::live_habits(const Cast& cast) {
  Dice& dice = world_.dice;
  ProgramTerms terms;
  terms.live = true;
  terms.world = cast.world;
  terms.window = dice.between(2, kWidestWindow);
  terms.work = 2 * dice.time(milliseconds(500), seconds(16)) / cast.steps;
  terms.keeps_last = dice.percent(70);
  terms.polls = dice.percent(10);
  return terms;
}

void Run::draw_live_programs(const Cast& cast) {
  if (cast.trainers == 0 || cast.observers != 0) machine_.live->expect_several_loops();
  if (cast.ranks != 0) add_live_job(cast);
  for (std::uint32_t i = 0; i < cast.trainers; ++i) add_live_trainer(cast, i, false);
  for (std::uint32_t i = 0; i < cast.workers; ++i) add_live_worker(cast, i);
  for (std::uint32_t i = 0; i < cast.observers; ++i) add_live_trainer(cast, i, true);
  for (std::uint32_t i = 0; i < cast.producers; ++i) add_producer(cast, i);
  add_ender();
}

void Run::add_live_job(const Cast& cast) {
  Dice& dice = world_.dice;
  ProgramTerms terms = live_habits(cast);
  terms.mode = wire::Mode::sharded;
  terms.announces = dice.percent(85);
  if (!cast.has_quotas) terms.steps = cast.steps;
  Launcher& job = add({"job", {cast.ranks}, cast.remote_ranks, cast.has_quotas});
  job.launch([this, &job, terms](std::uint32_t rank, std::uint32_t ranks) {
    ProgramTerms own = terms;
    own.rank = rank;
    own.ranks = ranks;
    own.announces = terms.announces && rank == 0;
    return live_trainer(around_, own, job.live_saved(), job.barrier());
  });
}

void Run::add_live_trainer(const Cast& cast, std::uint32_t number, bool looks_on) {
  Dice& dice = world_.dice;
  ProgramTerms terms = live_habits(cast);
  terms.announces = !looks_on && dice.percent(85);
  terms.asks_for_messages = dice.percent(10);
  terms.work /= cast.world;
  if (!cast.has_quotas && !looks_on) terms.steps = cast.steps;
  Launcher& one = add({fmt::format("{} {}", looks_on ? "evaluator" : "trainer", number),
                       {1},
                       dice.percent(20) ? 1U : 0U,
                       cast.has_quotas || looks_on});
  one.launch([this, &one, terms](std::uint32_t, std::uint32_t) {
    return live_trainer(around_, terms, one.live_saved(), nullptr);
  });
}

void Run::add_live_worker(const Cast& cast, std::uint32_t number) {
  Dice& dice = world_.dice;
  ProgramTerms terms = live_habits(cast);
  terms.mode = wire::Mode::queue;
  terms.undone = dice.percent(30) ? dice.between(1, 40) : 0;
  terms.done_early = dice.percent(30) ? dice.between(1, 40) : 0;
  Launcher& one =
      add({fmt::format("worker {}", number), {1}, dice.percent(25) ? 1U : 0U, true, true});
  one.launch([this, terms](std::uint32_t, std::uint32_t) { return worker(around_, terms); });
}

void Run::add_producer(const Cast& cast, std::uint32_t number) {
  Dice& dice = world_.dice;
  const LiveSettings& pool = feed_.live->pool;
  ProducerTerms terms;
  terms.name = fmt::format("actor {}", number);
  terms.together = cast.together;
  const bool counts_groups = pool.step_unit == StepUnit::groups;  // where one sequence is as much
  terms.makes_groups = pool.groups != LiveGroups::none && (counts_groups || dice.percent(80));
  terms.claims = cast.mixes ? dice.percent(50) : cast.claims;
  terms.in_place = dice.percent(20);
  terms.in_one_push = !terms.in_place && dice.percent(50);
  terms.abandons = dice.percent(30) ? dice.between(1, 20) : 0;
  terms.takes_back = dice.percent(20) ? dice.between(1, 20) : 0;
  terms.max_length = static_cast<std::uint32_t>(pool.max_length);
  terms.area_bytes = dice.percent(20) ? 0 : 65536;
  const std::uint64_t own = std::max<std::uint64_t>(cast.sequences / cast.producers, 1);
  if (cast.has_quotas) terms.quota = own;
  terms.work = 2 * dice.time(milliseconds(500), seconds(16)) / own;
  terms.limit = milliseconds(dice.pick<std::uint32_t>({500, 3000, 30'000}));
  const std::string habits = fmt::format(
      " ({} {}together{}{}{}{})", terms.together, terms.makes_groups ? "in groups, " : "",
      terms.claims ? ", claims" : "", terms.in_one_push ? ", in one push" : "",
      terms.abandons != 0 ? ", fails" : "", terms.takes_back != 0 ? ", takes back" : "");
  Launcher& one =
      add({terms.name, {1}, dice.percent(20) ? 1U : 0U, !cast.has_quotas, false, habits});
  one.launch([this, &one, terms](std::uint32_t, std::uint32_t) {
    return producer(around_, terms, one.made());
  });
}

/// Once those have ended that end by themselves, until all others have.
void Run::add_ender() {
  Launcher& one = add({"ender", {1}, 0, true});
  one.launch([this, &one](std::uint32_t, std::uint32_t) {
    const auto others_ended = [this, &one] {
      return std::all_of(launchers_.begin(), launchers_.end(), [&one](const auto& each) {
        return each.get() == &one || each->has_ended();
      });
    };
    return ender(
        around_, [this] { return over_; }, others_ended);
  });
}

}  // namespace batchwright::simulation
