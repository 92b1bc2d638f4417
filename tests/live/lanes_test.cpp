// Truncated unrolling: which rows lanes give at each step.

#include "daemon/live/lanes/lanes.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/live/some_pool.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

LiveSettings lanes_of(std::uint64_t lanes, std::uint64_t unroll, std::uint64_t world = 1) {
  LiveSettings settings = steps_of(lanes);
  settings.step_unit = StepUnit::lanes;
  settings.unroll = unroll;
  settings.world = world;
  return settings;
}

void push(SomePool& pool, std::uint32_t length, std::uint64_t version = 0) {
  LivePush push;
  push.length = length;
  push.version = push.version_newest = version;
  pool.push(0, 0, push);
}

void take(SomePool& pool, bool prefetch = false) {
  pool.at(0, LiveTake{.trainer = 0, .step = {}, .prefetch = prefetch});
}

/// The rows of the last step, "NUMBER:START+FRAMES" with r and l for reset and last, and * after
/// one of weight 0; "-" for a free lane. Of several ranks with " | " between.
std::string last_step(const SomePool& pool) {
  if (pool.results.steps.empty()) return "none";
  std::string text;
  for (const auto& batch : pool.results.steps.back().batches) {
    if (!text.empty()) text += " |";
    for (const LiveRow& row : batch) {
      if (!text.empty()) text += ' ';
      if (row.frames == 0) {
        text += '-';
        continue;
      }
      text += fmt::format("{}:{}+{}{}{}{}", row.number, row.start, row.frames, row.reset ? "r" : "",
                          row.last ? "l" : "", row.weight == 0 ? "*" : "");
    }
  }
  return text;
}

SequenceState state_of(const SomePool& pool, std::uint64_t number) {
  SequenceState state = SequenceState::waiting;
  for (const LiveChange& change : pool.results.changes) {
    if (change.number == number) state = change.state;
  }
  return state;
}

/// A producer that claims one by one, and pushes what it has claimed after a while.
struct SlowProducer {
  std::optional<std::uint64_t> claim;    ///< That waits.
  std::optional<std::uint64_t> version;  ///< Of what it makes.
  std::uint64_t ready_at = 0;
};

/// Producers that claim all they push, and a trainer whose every step makes a version. Returns
/// what was dropped.
std::uint64_t drops_of_run(std::uint32_t seed, std::uint64_t& steps) {
  std::mt19937 random(seed);
  const auto below = [&random](std::uint32_t most) {
    return static_cast<std::uint32_t>(random() % most);
  };
  const std::uint32_t world = 1 + below(3);
  LiveSettings settings = lanes_of(world * (1 + below(5)), 1 + below(8), world);
  settings.max_length = 1 + below(30);
  settings.max_staleness = below(5);
  if (below(2) == 0) settings.linger_ms = below(3);
  SomePool pool(settings);
  std::vector<SlowProducer> producers(1 + below(8));
  const std::uint32_t slowest = 1 + below(40);
  std::uint64_t given = 0, trained = 0, dropped = 0, now = 0;
  bool takes = false;
  const auto settle = [&] {
    for (const LiveAnswer& answer : pool.results.answers) {
      if (answer.kind == LiveAnswer::Kind::step) ++given, takes = false;
      if (answer.kind != LiveAnswer::Kind::granted) continue;
      for (std::size_t id = 0; id < producers.size(); ++id) {
        if (producers[id].claim != answer.event) continue;
        producers[id] = {{}, answer.value, now + below(id == 0 ? slowest : 3)};
      }
    }
    for (const LiveChange& change : pool.results.changes) {
      dropped += change.state == SequenceState::dropped_stale ? 1 : 0;
    }
    pool.results = {};
  };
  const auto tell = [&](const LiveEvent& event) { return pool.at(now, event); };
  for (; now < 400; ++now) {
    for (std::uint32_t id = 0; id < producers.size(); ++id) {
      SlowProducer& one = producers[id];
      if (!one.claim && !one.version) {
        one.claim = tell(LiveClaim{id, 1, {}});
      } else if (one.version && one.ready_at <= now) {
        LivePush push;
        push.length = 1 + below(static_cast<std::uint32_t>(settings.max_length));
        push.version = push.version_newest = *one.version;
        one.version.reset();
        pool.push(now, id, push);
      }
      settle();
    }
    if (given > trained && below(3) != 0) {
      tell(LiveAdvance{++trained});
      settle();
      tell(LiveRelease{0, trained - 1});
      settle();
    }
    if (!takes || given == trained) {
      takes = true;
      tell(LiveTake{.trainer = 0, .step = given, .prefetch = given > trained});
      settle();
    }
  }
  steps = given;
  return dropped;
}

}  // namespace

TEST_CASE("live: lanes go on with their sequences, and then take the next") {
  SomePool pool(lanes_of(2, 4));
  for (const std::uint32_t length : {10U, 4U, 6U}) push(pool, length);
  take(pool);
  CHECK(last_step(pool) == "0:0+4r 1:0+4rl");
  take(pool);
  CHECK(last_step(pool) == "0:4+4 2:0+4r");
  take(pool);
  CHECK(last_step(pool) == "0:8+2l 2:4+2l");
  take(pool);
  CHECK(pool.results.steps.size() == 3);
}

TEST_CASE("live: a sequence of a lane is done when its last step is released") {
  SomePool pool(lanes_of(1, 4));
  push(pool, 6);
  take(pool);
  take(pool);
  pool.at(0, LiveRelease{0, 1});
  CHECK(state_of(pool, 0) == SequenceState::delivered);
  pool.at(0, LiveRelease{0, 0});
  CHECK(state_of(pool, 0) == SequenceState::done);
  CHECK(pool.pool.status().waiting == 0);
}

TEST_CASE("live: a sequence that a lane has taken can be abandoned no more") {
  SomePool pool(lanes_of(1, 4));
  push(pool, 6);
  take(pool);
  pool.at(0, AbandonNumber{0, 0});
  push(pool, 3);
  pool.at(0, AbandonNumber{0, 1});
  take(pool);
  CHECK(last_step(pool) == "0:4+2l");
  CHECK(state_of(pool, 1) == SequenceState::abandoned);
}

TEST_CASE("live: the rank with the fewest rows takes the next sequence") {
  LiveSettings settings = lanes_of(6, 4, 2);
  settings.linger_ms = 0;
  SomePool pool(settings);
  for (const std::uint32_t length : {8U, 4U, 8U, 4U, 8U}) push(pool, length);
  take(pool);
  CHECK(last_step(pool) == "0:0+4r 2:0+4r 4:0+4r | 1:0+4rl 3:0+4rl -");
  for (const std::uint32_t length : {5U, 5U}) push(pool, length);
  take(pool);
  CHECK(last_step(pool) == "0:4+4l 2:4+4l 4:4+4l | 5:0+4r 6:0+4r -");
}

TEST_CASE("live: a short step has a row for each rank") {
  LiveSettings settings = lanes_of(4, 4, 2);
  settings.linger_ms = 0;
  SomePool pool(settings);
  push(pool, 8);
  take(pool);
  CHECK(last_step(pool) == "none");
  push(pool, 4);
  CHECK(last_step(pool) == "0:0+4r - | 1:0+4rl -");
  take(pool);  // rank 1 has none
  CHECK(pool.results.steps.size() == 1);
  CHECK(pool.pool.status().next_step == 1);
}

TEST_CASE("live: a lane goes on with what has become too stale") {
  LiveSettings settings = lanes_of(2, 4);
  settings.max_length = 100;
  settings.max_staleness = 0;
  settings.stale = StalePolicy::drop;
  settings.linger_ms = 0;
  SomePool pool(settings);
  push(pool, 8);
  push(pool, 4);
  push(pool, 4);
  take(pool);
  pool.at(0, LiveAdvance{1});
  CHECK(state_of(pool, 2) == SequenceState::dropped_stale);
  take(pool);
  CHECK(last_step(pool) == "0:4+4l -");
}

TEST_CASE("live: rows of lanes get weight 0 by the version of their step") {
  LiveSettings settings = lanes_of(2, 4);
  settings.max_length = 100;
  settings.max_staleness = 0;
  settings.stale = StalePolicy::zero;
  SomePool pool(settings);
  push(pool, 20);
  push(pool, 4);
  take(pool);
  CHECK(last_step(pool) == "0:0+4r 1:0+4rl");
  pool.at(0, LiveAdvance{1});
  push(pool, 8, 1);
  take(pool);
  CHECK(last_step(pool) == "0:4+4* 2:0+4r");
  pool.at(0, LiveAdvance{2});  // a step of these two would serve no one
  take(pool);
  CHECK(pool.results.steps.size() == 2);
  CHECK(pool.pool.status().busy_lanes == 0);
  push(pool, 4, 2);
  push(pool, 4, 2);
  CHECK(last_step(pool) == "3:0+4rl 4:0+4rl");
}

TEST_CASE("live: at the end of a feed with lanes a rank without a row repeats another's") {
  SomePool pool(lanes_of(4, 4, 2));
  push(pool, 6);
  take(pool);
  pool.at(0, LiveEnd{});
  CHECK(last_step(pool) == "0:0+4r - | 0:0+4r* -");
  take(pool);
  CHECK(last_step(pool) == "0:4+2l - | 0:4+2l* -");
  take(pool);
  CHECK(pool.last_answer().kind == LiveAnswer::Kind::end);
}

TEST_CASE("live: lanes tell how many sequences they take for sure") {
  LiveSettings settings = lanes_of(3, 10);
  settings.max_length = 40;  // at most 4 steps
  Lanes lanes(settings);
  CHECK(lanes.room_in(4) == 3);
  CHECK(lanes.room_in(5) == 6);
  lanes.take(7, 25);
  lanes.take(8, 10);
  CHECK(lanes.room_in(1) == 1);
  CHECK(lanes.room_in(3) == 2);
  CHECK(lanes.room_in(4) == 3);
  CHECK(lanes.room_after(0, 1) == 2);
  CHECK(lanes.room_after(1, 1) == 1);
  CHECK(lanes.room_after(1, 4) == 3);
  CHECK(lanes.move_on() == std::vector<SequenceId>{8});
  CHECK(lanes.room_in(1) == 2);
}

TEST_CASE("live: with pace no claimed sequence of lanes is dropped") {
  std::uint64_t all_steps = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    std::uint64_t steps = 0;
    CHECK(drops_of_run(seed, steps) == 0);
    all_steps += steps;
  }
  CHECK(all_steps > 3000);
}
