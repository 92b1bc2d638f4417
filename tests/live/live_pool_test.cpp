#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/live/some_pool.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

using Deadline = std::optional<std::uint64_t>;
using States = std::vector<SequenceState>;

/// The states that the sequence with this arrival has gone through.
States states_of(const SomePool& pool, std::uint64_t arrival) {
  States states;
  for (const LiveChange& change : pool.results.changes) {
    if (change.arrival == arrival) states.push_back(change.state);
  }
  return states;
}

/// Sequences that have left the pool, by arrival, in that order.
std::vector<std::uint64_t> left(const SomePool& pool) {
  std::vector<std::uint64_t> arrivals;
  for (const LiveChange& change : pool.results.changes) {
    const bool known = std::ranges::find(arrivals, change.arrival) != arrivals.end();
    if (change.left && !known) arrivals.push_back(change.arrival);
  }
  return arrivals;
}

LiveTake loop() { return {.trainer = 0, .step = {}, .prefetch = false}; }

}  // namespace

TEST_CASE("live: a pool with nothing in it waits for no time") {
  SomePool pool(steps_of(2));
  CHECK(pool.pool.next_deadline() == Deadline());
  pool.push(3);
  CHECK(pool.pool.next_deadline() == Deadline());
}

TEST_CASE("live: the next deadline is the earliest of pushes, claims, groups and linger") {
  LiveSettings settings = steps_of(2);
  settings.pool_sequences = 2;
  settings.linger_ms = 100;
  settings.claim_timeout_ms = 60;
  settings.groups = LiveGroups::step;
  settings.group_timeout_ms = 40;
  SomePool pool(settings);
  pool.at(0, loop());
  pool.push(5);
  CHECK(pool.pool.next_deadline() == Deadline(105));  // a short step
  pool.at(10, LiveClaim{1, 1, {}});
  CHECK(pool.pool.next_deadline() == Deadline(70));  // the claim that was granted
  pool.at(12, LiveClaim{2, 1, 30});
  CHECK(pool.pool.next_deadline() == Deadline(42));  // the one that waits
  LivePush push;
  push.timeout_ms = 7;
  pool.push(13, 3, push);
  CHECK(pool.pool.next_deadline() == Deadline(20));  // a push that the pool has no place for
  push.timeout_ms.reset();
  push.group = 1;
  push.group_size = 2;
  pool.push(14, 1, push);
  CHECK(pool.pool.next_deadline() == Deadline(20));
}

TEST_CASE("live: a begun group is closed at its deadline, which is then over") {
  LiveSettings settings = steps_of(4);
  settings.groups = LiveGroups::step;
  settings.group_timeout_ms = 40;
  SomePool pool(settings);
  LivePush push;
  push.group = 9;
  push.group_size = 3;
  pool.push(2, 0, push);
  CHECK(pool.pool.next_deadline() == Deadline(42));
  CHECK(pool.pool.status().in_flight == 2);
  pool.at(42, TimePassed{});
  CHECK(pool.pool.next_deadline() == Deadline());
  CHECK(pool.pool.status().in_flight == 0);
  CHECK(pool.pool.status().waiting == 1);
}

TEST_CASE("live: a short step is cut at the linger's deadline, and by no event before") {
  LiveSettings settings = steps_of(4);
  settings.linger_ms = 50;
  SomePool pool(settings);
  pool.at(0, loop());
  pool.push(10);
  pool.at(59, TimePassed{});
  CHECK(pool.results.steps.empty());
  pool.at(*pool.pool.next_deadline(), TimePassed{});
  REQUIRE(pool.results.steps.size() == 1);
  CHECK(pool.results.steps[0].at_ms == 60);
  CHECK(pool.pool.next_deadline() == Deadline());
}

TEST_CASE("live: a push that waits is accepted under its event, and tells its arrival") {
  LiveSettings settings = steps_of(1);
  settings.pool_sequences = 1;
  SomePool pool(settings);
  pool.push(0);
  const std::uint64_t blocked = pool.push(1);
  CHECK(pool.pool.status().blocked_pushes == 1);
  CHECK(states_of(pool, 1).empty());
  pool.at(2, loop());
  CHECK(pool.last_answer().event == blocked);
  CHECK(pool.last_answer().kind == LiveAnswer::Kind::accepted);
  CHECK(states_of(pool, 1) == States{SequenceState::waiting});
}

TEST_CASE("live: a sequence leaves the pool at its last cut, and is done with its release") {
  SomePool pool(steps_of(2));
  pool.at(0, loop());
  pool.push(0);
  CHECK(left(pool).empty());
  pool.push(0);
  CHECK(left(pool) == std::vector<std::uint64_t>{0, 1});
  CHECK(states_of(pool, 0) == States{SequenceState::waiting, SequenceState::delivered});
  pool.at(1, LiveRelease{0, 0});
  CHECK(states_of(pool, 0).back() == SequenceState::done);
  CHECK(pool.pool.status().bytes == 0);
}

TEST_CASE("live: a step is released by each trainer that it was cut for") {
  SomePool pool(steps_of(1));
  pool.at(0, loop());
  pool.at(0, LiveTake{1, {}, true});
  pool.push(0);
  pool.at(1, LiveRelease{0, 0});
  pool.at(1, LiveRelease{0, 0});
  CHECK(states_of(pool, 0).back() == SequenceState::delivered);
  pool.at(2, LiveRelease{1, 0});
  CHECK(states_of(pool, 0).back() == SequenceState::done);
}

TEST_CASE("live: a trainer that is gone holds no step, and joins again where it takes one") {
  SomePool pool(steps_of(1));
  pool.at(0, loop());
  pool.at(0, LiveTake{1, {}, true});
  pool.push(0);
  pool.at(1, LiveRelease{0, 0});
  pool.at(2, TrainerGone{1});
  CHECK(states_of(pool, 0).back() == SequenceState::done);
  pool.push(3);
  pool.at(4, loop());
  pool.at(5, LiveTake{1, {}, false});
  pool.push(6);
  CHECK(pool.last_answer().value == 2);
}

TEST_CASE("live: a sequence that is used again leaves with its last delivery") {
  LiveSettings settings = steps_of(1);
  settings.reuse = 2;
  settings.fresh_share = 0.0;
  SomePool pool(settings);
  pool.push(0);
  pool.at(1, loop());
  CHECK(left(pool).empty());
  CHECK(pool.pool.status().kept == 1);
  pool.push(2);
  pool.at(3, loop());
  pool.at(4, LiveRelease{0, 0});
  const std::vector<std::uint64_t> gone = left(pool);
  CHECK(gone.size() + pool.pool.status().kept + pool.pool.status().waiting == 2);
}

TEST_CASE("live: what is abandoned, dropped or late leaves at once with the reason") {
  LiveSettings settings = steps_of(4);
  settings.groups = LiveGroups::step;
  settings.max_staleness = 0;
  settings.stale = StalePolicy::drop;
  SomePool pool(settings);
  pool.push(0);
  pool.at(0, AbandonNumber{0, 0});
  CHECK(pool.results.changes.back().why == "asked");
  LivePush push;
  push.group = 7;
  push.group_size = 2;
  pool.push(1, 0, push);
  pool.at(2, LiveAdvance{1});
  CHECK(pool.results.changes.back().why == "stale");
  push.version = push.version_newest = 1;
  pool.push(3, 0, push);
  CHECK(pool.results.changes.back().why == "late");
  CHECK(pool.results.changes.back().state == SequenceState::dropped_stale);
  CHECK(left(pool) == std::vector<std::uint64_t>{0, 1, 2});
  CHECK(pool.pool.status().waiting == 0);
}

TEST_CASE("live: the status says what claims wait for") {
  LiveSettings settings = steps_of(2);
  settings.max_staleness = 0;
  SomePool pool(settings);
  pool.at(0, LiveClaim{0, 2, {}});
  CHECK(pool.pool.status().claims_wait_for == "trainer");
  pool.at(1, LiveTake{0, {}, true});
  CHECK(pool.pool.status().claims_wait_for.empty());
  pool.at(2, LiveClaim{1, 2, {}});
  CHECK(pool.pool.status().claims_wait_for == "staleness");
  CHECK(pool.pool.status().waiting_claims == 1);
}

TEST_CASE("live: a producer that is gone leaves neither claims nor pushes that wait") {
  LiveSettings settings = steps_of(2);
  settings.pool_sequences = 2;
  SomePool pool(settings);
  pool.at(0, LiveTake{0, {}, true});
  pool.at(0, LiveClaim{0, 2, {}});
  pool.push(0, 1);
  CHECK(pool.pool.status().blocked_pushes == 1);
  pool.at(1, ProducerGone{0});
  CHECK(pool.pool.status().in_flight == 0);
  CHECK(pool.pool.status().blocked_pushes == 0);
  CHECK(pool.pool.status().waiting == 1);
}

TEST_CASE("live: a larger pool lets in what waits, and another bound grants what was held back") {
  LiveSettings settings = steps_of(2);
  settings.pool_sequences = 2;
  settings.max_staleness = 0;
  SomePool pool(settings);
  for (std::uint64_t i = 0; i < 3; ++i) pool.push(0);
  const std::uint64_t push = 2;
  pool.at(1, LiveAdvance{});
  const std::uint64_t claim = pool.at(1, LiveClaim{1, 1, {}});
  CHECK(pool.pool.status().claims_wait_for == "pool");
  LiveLimits limits = pool.pool.settings();
  limits.pool_sequences = 4;
  pool.at(5, LimitsChanged{limits});
  CHECK(pool.last_answer().event == push);
  CHECK(pool.last_answer().kind == LiveAnswer::Kind::accepted);
  CHECK(pool.pool.status().claims_wait_for == "staleness");
  limits.max_staleness = 1;
  pool.at(6, LimitsChanged{limits});
  CHECK(pool.last_answer().event == claim);
  CHECK(pool.last_answer().kind == LiveAnswer::Kind::granted);
}

TEST_CASE("live: smaller limits keep what is here, and refuse what waits and fits no longer") {
  LiveSettings settings = steps_of(2);
  settings.pool_sequences = 4;
  SomePool pool(settings);
  pool.at(0, LiveTake{0, {}, true});
  pool.at(0, LiveClaim{1, 4, {}});
  const std::uint64_t claim = pool.at(0, LiveClaim{2, 4, {}});
  LiveLimits limits = pool.pool.settings();
  limits.pool_sequences = 2;
  pool.at(1, LimitsChanged{limits});
  CHECK(pool.last_answer().event == claim);
  CHECK(pool.last_answer().why == "4 sequences; 1 to 2 can be claimed at once");
  for (std::uint64_t i = 0; i < 4; ++i) pool.push(2, 1);  // were claimed, and have their places
  CHECK(pool.results.steps.size() == 1);
  CHECK(pool.pool.status().waiting == 2);
}

TEST_CASE("live: with fewer deliveries allowed, what has had them leaves") {
  LiveSettings settings = steps_of(2);
  settings.reuse = 3;
  SomePool pool(settings);
  pool.at(0, loop());
  for (int i = 0; i < 3; ++i) pool.push(0);
  CHECK(pool.pool.status().kept == 2);
  LiveSettings fewer = settings;
  fewer.reuse = 1;
  pool.at(1, LimitsChanged{*check_live_settings(fewer)});
  CHECK(left(pool) == std::vector<std::uint64_t>{0, 1});
  CHECK(pool.pool.status().waiting == 1);
}

TEST_CASE(
    "live: a tighter bound drops what is beyond it, and a longer one of time counts at once") {
  LiveSettings settings = steps_of(4);
  settings.max_staleness = 3;
  settings.claim_timeout_ms = 100;
  SomePool pool(settings);
  pool.push(0);
  pool.at(0, LiveAdvance{2});
  pool.at(10, LiveClaim{1, 1, {}});
  CHECK(pool.pool.next_deadline() == Deadline(110));
  LiveLimits limits = pool.pool.settings();
  limits.max_staleness = 1;
  limits.claim_timeout_ms = 500;
  pool.at(20, LimitsChanged{limits});
  CHECK(states_of(pool, 0) == States{SequenceState::waiting, SequenceState::dropped_stale});
  CHECK(pool.pool.next_deadline() == Deadline(510));
  limits.claim_timeout_ms = 5;
  pool.at(30, LimitsChanged{limits});
  CHECK(pool.pool.status().in_flight == 0);
}

TEST_CASE("live: a pool never gets too small for a step of its groups") {
  LiveSettings settings = steps_of(2);
  settings.step_unit = StepUnit::groups;
  settings.groups = LiveGroups::step;
  settings.pool_sequences = 16;
  SomePool pool(settings);
  LivePush push;
  push.group_size = 4;
  for (const std::uint64_t group : {1U, 2U}) {
    push.group = group;
    pool.push(0, 0, push);
  }
  LiveLimits limits = pool.pool.settings();
  limits.pool_sequences = 2;
  pool.at(1, LimitsChanged{limits});
  CHECK(pool.pool.settings().pool_sequences == 8);
  pool.at(1, loop());
  for (int i = 0; i < 3; ++i) {
    for (const std::uint64_t group : {1U, 2U}) {
      push.group = group;
      pool.push(2, 0, push);
    }
  }
  CHECK(pool.results.steps.size() == 1);
}

TEST_CASE("live: ten thousand waiting sequences are cut oldest version first") {
  LiveSettings settings = steps_of(100);
  settings.pool_sequences = 10'000;
  settings.window = 1;
  SomePool pool(settings);
  pool.at(0, LiveAdvance{9});
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    LivePush push;
    push.version = push.version_newest = 9 - i % 10;
    pool.push(i, static_cast<ProducerId>(i % 7), push);
  }
  for (int step = 0; step < 100; ++step) pool.at(10'000, loop());
  REQUIRE(pool.results.steps.size() == 100);
  for (std::size_t step = 0; step < 100; ++step) {
    for (const LiveRow& row : pool.results.steps[step].batches[0]) {
      CHECK(row.staleness == 9 - step / 10);
    }
  }
}
