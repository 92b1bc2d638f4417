#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "daemon/delivery/feed/core/slots/slot_scheduler.h"
#include "tests/delivery/core/laggards.h"
#include "tests/delivery/feed/names.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Both take all batches, one at a time. The slow one's first ticket, which it holds.
wire::DeliveryT join_both(TestServer& server, RawClient& slow, RawClient& fast) {
  REQUIRE(join(slow, server.arena_socket(), one_at_a_time()));
  REQUIRE(join(fast, server.arena_socket(), one_at_a_time()));
  const auto first = next_ticket(slow);
  REQUIRE(first);
  return *first;
}

constexpr SubscriptionKey kSlow{SessionId{1}, {1}};

Cohort cohort_at(const Members& place, std::uint64_t step) {
  return {
      {Cursor(whole_share(1), Epoch{0}, Step{step}), kEpochBatches, 0, nullptr, {}}, &place, false};
}

}  // namespace

TEST_CASE("delivery: those that are half of the slots behind are waited for, and no others") {
  using std::chrono::milliseconds;
  StragglerState slow_state;
  const Members slow{{kSlow, &slow_state}};
  Stragglers stragglers(8, milliseconds(50));
  struct Row {
    std::uint64_t behind;
    std::uint64_t keeps;
    bool waits;
  };
  for (const Row& row : {Row{0, 0, false}, Row{3, 3, false}, Row{4, 4, true}, Row{15, 15, true},
                         Row{16, 0, false}}) {
    CAPTURE(row.behind);
    const Cohort cohort = cohort_at(slow, 20 - row.behind);
    CHECK(stragglers.keeps_before(cohort, batch(20)) == row.keeps);
    CHECK(stragglers.wait_for(batch(20), {cohort}, kNow).waits == row.waits);
    CHECK(stragglers.awaited().has_value() == row.waits);
    stragglers.clear();
    slow_state = {};
  }
}

TEST_CASE("delivery: one that was left behind keeps nothing, until it has caught up") {
  using std::chrono::milliseconds;
  StragglerState slow_state;
  const Members slow{{kSlow, &slow_state}};
  StragglerState fast_state;
  const Members fast{{{SessionId{2}, {1}}, &fast_state}};
  Stragglers stragglers(8, milliseconds(50));
  std::vector<Cohort> cohorts{cohort_at(slow, 0), cohort_at(fast, 8)};
  CHECK(stragglers.wait_for(batch(8), cohorts, kNow).waits);
  const auto verdict = stragglers.wait_for(batch(8), cohorts, kNow + milliseconds(50));
  CHECK(!verdict.waits);
  REQUIRE(verdict.left_behind.size() == 1);
  CHECK(verdict.left_behind[0].key == kSlow);
  cohorts[0].left_behind = slow_state.left_behind = true;
  CHECK(stragglers.keeps_before(cohorts[0], batch(8)) == 0);
  CHECK(stragglers.end_turn(cohorts, kNow + milliseconds(51)).empty());
  cohorts[0] = cohort_at(slow, 7);
  CHECK(stragglers.end_turn(cohorts, kNow + milliseconds(52)) == std::vector{kSlow});
  CHECK(stragglers.empty());
}

TEST_CASE("delivery: a turn in which a straggler held up no other costs no patience") {
  using std::chrono::milliseconds;
  StragglerState slow_state;
  const Members slow{{kSlow, &slow_state}};
  Stragglers stragglers(8, milliseconds(50));
  const std::vector<Cohort> cohorts{cohort_at(slow, 0)};
  CHECK(stragglers.wait_for(batch(8), cohorts, kNow).waits);
  stragglers.end_turn(cohorts, kNow);
  CHECK(stragglers.awaited() == kSlow);
  stragglers.end_turn(cohorts, kNow + milliseconds(10));
  CHECK(!stragglers.awaited());
  CHECK(stragglers.wait_for(batch(8), cohorts, kNow + milliseconds(100)).waits);
  stragglers.forget(kSlow);
  CHECK(stragglers.empty());
}

TEST_CASE("delivery: no client waits for one that has the largest batches before it") {
  TestServer server(few_slots(std::chrono::hours(1)), 4 * kEpochBatches);
  RawClient slow(server.endpoint());
  RawClient fast(server.endpoint());
  auto subscribe = one_at_a_time();
  subscribe.worst_first = 16;
  REQUIRE(join(slow, server.arena_socket(), std::move(subscribe)));
  REQUIRE(next_ticket(slow));
  REQUIRE(join(fast, server.arena_socket(), one_at_a_time()));
  for (std::uint64_t i = 0; i < kEpochBatches; ++i) CHECK(take_one(fast) == i);
}

TEST_CASE("delivery: patience is spent by waiting and comes back slowly") {
  using std::chrono::milliseconds;
  WaitBudget::Clock::time_point now{};
  WaitBudget patience(milliseconds(50), now);
  CHECK(patience.wait(now));
  CHECK(patience.wait(now += milliseconds(30)));
  patience.stop_waiting(now += milliseconds(10));
  CHECK_FALSE(patience.waiting());
  CHECK(patience.wait(now += milliseconds(200)));  // 10 ms were left, and 10 came back
  CHECK(patience.wait(now += milliseconds(19)));
  CHECK_FALSE(patience.wait(now += milliseconds(1)));
  CHECK_FALSE(patience.waiting());
  // However long ago it was: at most all of it.
  CHECK(patience.wait(now += std::chrono::hours(1)));
  CHECK(patience.wait(now += milliseconds(49)));
  CHECK_FALSE(patience.wait(now += milliseconds(1)));
}

TEST_CASE("delivery: a feed that waits for a straggler can be removed") {
  TestServer server(few_slots(std::chrono::hours(1)), 4 * kEpochBatches);
  const auto left = [](Server& s) { return s.memory().left(); };
  const std::uint64_t all = server.ask(left) + server.feed().arena_bytes;
  RawClient slow(server.endpoint());
  RawClient fast(server.endpoint());
  join_both(server, slow, fast);
  run_ahead(fast);
  server.ask([](Server& s) {
    s.remove_feed("train");
    return 0;
  });
  CHECK(read_until<wire::Refused>(fast));
  CHECK(server.eventually([&](TestServer& s) { return s.ask(left) == all; }));
}
