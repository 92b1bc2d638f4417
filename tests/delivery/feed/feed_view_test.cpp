#include "daemon/delivery/feed/feed_view.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/delivery/feed/wait_reason.h"
#include "tests/delivery/feed/names.h"
#include "tests/delivery/feed/ten_steps.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

using Phase = Subscription::Stage;
using Habit = Subscription::Habit;
using Demands = std::vector<std::pair<BatchId, SubscriptionKey>>;

constexpr std::uint32_t kSlots = 4;

/// The parts of a feed with four slots and a plan, and what was put into them.
struct Parts {
  Parts() { plans.begin(ten_steps()); }

  FeedView view() const {
    return {settings, subscriptions, plans, desk, scheduler, life, Epoch{0}, 20};
  }
  Subscription& add(std::uint64_t session, std::uint64_t step) {
    life.come();
    Subscription one({}, {1}, Cursor(whole_share(1), Epoch{0}, Step{step}));
    one.client.program = "c" + std::to_string(session);
    one.stage = Phase::in_epoch;
    one.habit = Habit::keeps_last;
    one.terms.window = 2;
    Subscription& added = subscriptions.add(client(session), std::move(one));
    note(session);
    return added;
  }
  void note(std::uint64_t session) {
    const bool planned = plans.has(subscriptions.at(client(session)).cursor.epoch());
    subscriptions.note(client(session), {planned, false});
  }
  /// The batch is in a slot; `holder`, if any, holds it.
  void fill(std::uint64_t index, Subscription* holder = nullptr) {
    const auto answer = scheduler.demand({batch(index), false}, view().fronts(), kNow);
    REQUIRE(answer.assignment);
    scheduler.finished(*answer.assignment, AssembledBatch{0, 64, 1, 1, 1, 0, {}});
    if (holder == nullptr) return;
    scheduler.cache().hold(answer.assignment->slot.index);
    holder->leases[{index}] = {answer.assignment->slot, {}};
    ++holder->delivered;
  }
  WaitingFor waiting(const Subscription& one, std::uint64_t session = 1) const {
    return view().waiting_for(client(session), one);
  }
  std::string reason(const Subscription& one) const { return reason_to_wait(view(), one, kNow); }

  FeedSettings settings;
  SubscriptionTable subscriptions{kSlots};
  PlanKeeper plans{false};
  QueueDesk desk{{}, nullptr, nullptr, {1}};
  SlotScheduler scheduler{
      std::make_shared<SlotGeneration>(ArenaNumber{1}, *Arena::create(kSlots, 4096),
                                       std::make_shared<MemoryBudget>()),
      {1, 50ms}};
  FeedLife life;
};

}  // namespace

TEST_CASE("delivery: before the first client comes the first epoch's batches are due") {
  Parts parts;
  REQUIRE(parts.view().fronts().size() == 1);
  CHECK(parts.view().fronts()[0].itinerary.ahead(0) == batch(0));
  parts.life.come();
  CHECK(parts.view().fronts().empty());
}

TEST_CASE("delivery: those at one place are one front, and those without a plan are none") {
  Parts parts;
  parts.add(1, 3);
  parts.add(2, 3);
  parts.add(3, 5);
  Subscription& dropped = parts.add(4, 0);
  dropped.cursor = Cursor(whole_share(1), Epoch{7}, Step{0});
  parts.note(4);
  CHECK(parts.view().fronts().size() == 2);
  CHECK(parts.view().waits_for_plan(dropped));
  CHECK(parts.view().plan_needs().stood_in == std::set<Epoch>{Epoch{0}, Epoch{7}});
}

TEST_CASE("delivery: each batch that is waited for is demanded once, in rotation") {
  Parts parts;
  for (const std::uint64_t session : {1U, 2U}) parts.add(session, 3);
  parts.add(3, 5);
  CHECK(parts.view().demands(0) == Demands{{batch(3), client(1)}, {batch(5), client(3)}});
  CHECK(parts.view().demands(1) == Demands{{batch(5), client(3)}, {batch(3), client(1)}});
  parts.fill(3);
  CHECK(parts.view().demands(0) == Demands{{batch(5), client(3)}});
}

TEST_CASE("delivery: releases may join while half of the slots are left, and never in a queue") {
  Parts parts;
  Subscription& one = parts.add(1, 0);
  for (const std::uint64_t index : {0U, 1U}) parts.fill(index, &one);
  CHECK(parts.view().releases_may_join(one));
  one.terms.mode = wire::Mode::queue;
  CHECK_FALSE(parts.view().releases_may_join(one));
  one.terms.mode = wire::Mode::replica;
  parts.fill(2, &one);
  CHECK_FALSE(parts.view().releases_may_join(one));
  one.client.inline_batches = true;  // it holds no slot
  CHECK(parts.view().releases_may_join(one));
}

TEST_CASE("delivery: a batch is not demanded for a client that may not have it now") {
  Parts parts;
  Subscription& one = parts.add(1, 3);
  parts.settings.max_lead = 2;
  parts.add(2, 1);
  CHECK(parts.view().leads_too_far(one));
  CHECK(parts.view().demands(0) == Demands{{batch(1), client(2)}});
  parts.settings.max_lead = 3;
  CHECK(parts.view().demands(0).size() == 2);
  one.terms.window = 0;
  CHECK(parts.view().demands(0).size() == 1);
}

TEST_CASE("delivery: a client waits for the daemon, or the daemon for a client, or neither does") {
  Parts parts;
  Subscription& one = parts.add(1, 3);
  CHECK(parts.waiting(one) == WaitingFor::daemon);
  parts.fill(2, &one);
  parts.fill(1, &one);
  parts.note(1);
  CHECK(parts.waiting(one) == WaitingFor::client);  // its window is full
  one.leases.erase({1});
  one.habit = Habit::looks_on;
  CHECK(parts.waiting(one) == WaitingFor::client);
  one.habit = Habit::keeps_last;
  CHECK(parts.waiting(one) == WaitingFor::none);  // it works on one
  parts.settings.max_lead = 1;
  parts.add(2, 0);
  one.leases.clear();
  CHECK(parts.waiting(one) == WaitingFor::none);  // for the other client
  one.stage = Phase::over;
  CHECK(parts.waiting(one) == WaitingFor::none);
}

TEST_CASE("delivery: a client waits only where it said so, with a batch in hand or with none") {
  Parts parts;
  Subscription& one = parts.add(1, 3);
  one.client.abilities = kAbilities;
  for (const bool holds : {false, true}) {
    if (holds) parts.fill(2, &one);
    parts.note(1);
    CAPTURE(holds);
    one.asked = false;
    CHECK(parts.waiting(one) == WaitingFor::none);
    CHECK(!parts.view().waits_for_clients(client(1), one));
    one.asked = true;
    CHECK(parts.waiting(one) == WaitingFor::daemon);
  }
}

TEST_CASE("delivery: who waits where others hold all slots waits for a slot, and more would do") {
  Parts parts;
  Subscription& holder = parts.add(1, 4);
  holder.terms.window = kSlots;
  Subscription& other = parts.add(2, 9);
  for (std::uint64_t i = 0; i < kSlots; ++i) parts.fill(i, &holder);
  parts.note(1);
  CHECK(parts.waiting(other, 2) == WaitingFor::slot);
  CHECK(parts.waiting(holder) == WaitingFor::client);  // it would have one if it released one
  CHECK(parts.view().slots_to_set() == 6);  // two for each of both, one that goes round, one more
  other.waiting.become(WaitingFor::slot, kNow);
  holder.waiting.become(WaitingFor::slot, kNow);
  CHECK(parts.view().slots_to_set() == kSlots + 3);  // for those two, and one that goes round
  other.client.abilities = kAbilities;
  CHECK(parts.waiting(other, 2) == WaitingFor::none);
}

TEST_CASE("delivery: a client waits for others where all slots are held, and not for a plan") {
  Parts parts;
  Subscription& holder = parts.add(1, 4);
  holder.terms.window = kSlots;
  Subscription& other = parts.add(2, 9);
  CHECK(!parts.view().waits_for_clients(client(2), other));
  for (std::uint64_t i = 0; i < kSlots; ++i) parts.fill(i, &holder);
  parts.note(1);
  CHECK(parts.view().waits_for_clients(client(2), other));
  CHECK(!parts.view().waits_for_clients(client(1), holder));
  other.stage = Phase::applied;
  CHECK(!parts.view().waits_for_clients(client(2), other));
}

TEST_CASE("delivery: the reason why a client waits is said") {
  Parts parts;
  Subscription& one = parts.add(1, 3);
  one.cursor = Cursor(whole_share(1), Epoch{7}, Step{0});
  CHECK(parts.reason(one) == "epoch 7 is being planned");
  one.cursor = Cursor(whole_share(1), Epoch{0}, Step{10});
  CHECK(parts.reason(one) == "a batch that is about to come");
  one.cursor = Cursor(whole_share(1), Epoch{0}, Step{3});
  const auto answer = parts.scheduler.demand({batch(3), true}, parts.view().fronts(), kNow);
  CHECK(parts.reason(one) == "batch 3 of epoch 0, which is being assembled");
  parts.scheduler.finished(*answer.assignment, AssembledBatch{0, 64, 1, 1, 1, 0, {}});
  parts.settings.max_lead = 2;
  parts.add(2, 1);
  CHECK(parts.reason(one) ==
        "the slowest client, of which it is max_lead = 2 steps ahead: c2 (pid 0)");
  parts.fill(2, &one);
  parts.fill(1, &one);
  CHECK(parts.reason(one) ==
        "this client's releases: it holds 2 batches, as many as its window allows");
  one.stage = Phase::over;
  CHECK(parts.reason(one) == "nothing: its epochs are over");
  parts.life.fail({ErrorCode::io_error, "the disk is away"});
  CHECK(parts.reason(one) == "the disk is away");
}

TEST_CASE("delivery: one that waits for a slot is told which clients hold them") {
  Parts parts;
  Subscription& holder = parts.add(1, 4);
  holder.terms.window = kSlots;
  for (std::uint64_t i = 0; i < kSlots; ++i) parts.fill(i, &holder);
  holder.moved = kNow - 7s;
  const std::string reason = parts.reason(parts.add(2, 9));
  CAPTURE(reason);
  CHECK(reason.starts_with("a slot: of 4 slots 4 are held"));
  CHECK(reason.find("c1 (pid 0) holds 4 and has released none for 7 s") != std::string::npos);
}

TEST_CASE("delivery: one that waits for a slot is told when no client holds any") {
  Parts parts;
  const std::string reason = parts.reason(parts.add(1, 9));
  CAPTURE(reason);
  CHECK(reason.starts_with("a slot: of 4 slots 0 are held"));
  CHECK(reason.ends_with("; no client holds any"));
}
