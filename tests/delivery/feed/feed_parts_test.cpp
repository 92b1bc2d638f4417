#include "daemon/delivery/feed/core/feed_parts.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

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

FeedSettings four_slots() {
  FeedSettings settings;
  settings.slots = kSlots;
  return settings;
}

/// The parts of a feed with four slots and a plan, and what was put into them.
struct Parts : FeedParts {
  Parts()
      : FeedParts(four_slots(),
                  std::make_shared<SlotGeneration>(ArenaNumber{1}, *Arena::create(kSlots, 4096),
                                                   std::make_shared<MemoryBudget>()),
                  {1, 50ms}, QueueService({}, {}, {}, {1}), Epoch{0}, 20) {
    plans.begin(ten_steps());
    note_plans();
  }

  const Subscription& add(std::uint64_t session, std::uint64_t step) {
    life.come();
    Subscription one({}, {1}, Cursor(whole_share(1), Epoch{0}, Step{step}));
    one.client.session = SessionId{session};
    one.client.program = "c" + std::to_string(session);
    one.stage = Phase::in_epoch;
    one.habit = Habit::keeps_last;
    one.terms.window = 2;
    subscriptions.add(std::move(one));
    return subscriptions.at(client(session));
  }
  SubscriptionTable::Edit edit(const Subscription& one) { return subscriptions.edit(one.key()); }
  /// The batch is in a slot; `holder`, if any, holds it.
  void fill(std::uint64_t index, const Subscription* holder = nullptr) {
    const auto answer = scheduler.demand({batch(index), false}, cohorts(), kNow);
    REQUIRE(answer.assignment);
    scheduler.finished(*answer.assignment, AssembledBatch{0, 64, 1, 1, 1, 0, {}});
    if (holder == nullptr) return;
    scheduler.cache().hold(answer.assignment->slot.index);
    const auto one = edit(*holder);
    one->leases[{index}] = {answer.assignment->slot, {}};
    ++one->delivered;
  }
  std::string reason(const Subscription& one) const { return reason_to_wait(*this, one, kNow); }
};

}  // namespace

TEST_CASE("delivery: before the first client comes the first epoch's batches are due") {
  Parts parts;
  REQUIRE(parts.cohorts().size() == 1);
  CHECK(parts.cohorts()[0].upcoming.ahead(0) == batch(0));
  parts.life.come();
  CHECK(parts.cohorts().empty());
}

TEST_CASE("delivery: those at one place are one cohort, and those without a plan are none") {
  Parts parts;
  parts.add(1, 3);
  parts.add(2, 3);
  parts.add(3, 5);
  const Subscription& dropped = parts.add(4, 0);
  parts.edit(dropped)->cursor = Cursor(whole_share(1), Epoch{7}, Step{0});
  CHECK(parts.cohorts().size() == 2);
  CHECK(parts.waits_for_plan(dropped));
  CHECK(parts.plan_needs().stood_in == std::set<Epoch>{Epoch{0}, Epoch{7}});
}

TEST_CASE("delivery: each batch that is waited for is demanded once, in rotation") {
  Parts parts;
  for (const std::uint64_t session : {1U, 2U}) parts.add(session, 3);
  parts.add(3, 5);
  CHECK(parts.demands(0) == Demands{{batch(3), client(1)}, {batch(5), client(3)}});
  CHECK(parts.demands(1) == Demands{{batch(5), client(3)}, {batch(3), client(1)}});
  parts.fill(3);
  CHECK(parts.demands(0) == Demands{{batch(5), client(3)}});
}

TEST_CASE("delivery: releases may join while half of the slots are left, and never in a queue") {
  Parts parts;
  const Subscription& one = parts.add(1, 0);
  for (const std::uint64_t index : {0U, 1U}) parts.fill(index, &one);
  CHECK(parts.releases_may_join(one));
  parts.edit(one)->terms.mode = wire::Mode::queue;
  CHECK_FALSE(parts.releases_may_join(one));
  parts.edit(one)->terms.mode = wire::Mode::replica;
  parts.fill(2, &one);
  CHECK_FALSE(parts.releases_may_join(one));
  parts.edit(one)->client.inline_batches = true;  // it holds no slot
  CHECK(parts.releases_may_join(one));
}

TEST_CASE("delivery: a batch is not demanded for a client that may not have it now") {
  Parts parts;
  const Subscription& one = parts.add(1, 3);
  parts.settings.max_lead = 2;
  parts.add(2, 1);
  CHECK(parts.leads_too_far(one));
  CHECK(parts.demands(0) == Demands{{batch(1), client(2)}});
  parts.settings.max_lead = 3;
  CHECK(parts.demands(0).size() == 2);
  parts.edit(one)->terms.window = 0;
  CHECK(parts.demands(0).size() == 1);
}

TEST_CASE("delivery: a client waits for the daemon, or the daemon for a client, or neither does") {
  Parts parts;
  const Subscription& one = parts.add(1, 3);
  CHECK(parts.waiting_for(one) == WaitingFor::daemon);
  parts.fill(2, &one);
  parts.fill(1, &one);
  CHECK(parts.waiting_for(one) == WaitingFor::client);  // its window is full
  parts.edit(one)->leases.erase({1});
  parts.edit(one)->habit = Habit::looks_on;
  CHECK(parts.waiting_for(one) == WaitingFor::client);
  parts.edit(one)->habit = Habit::keeps_last;
  CHECK(parts.waiting_for(one) == WaitingFor::none);  // it works on one
  parts.settings.max_lead = 1;
  parts.add(2, 0);
  parts.edit(one)->leases.clear();
  CHECK(parts.waiting_for(one) == WaitingFor::none);  // for the other client
  parts.edit(one)->stage = Phase::over;
  CHECK(parts.waiting_for(one) == WaitingFor::none);
}

TEST_CASE("delivery: a client waits only where it said so, with a batch in hand or with none") {
  Parts parts;
  const Subscription& one = parts.add(1, 3);
  parts.edit(one)->client.abilities = kAbilities;
  for (const bool holds : {false, true}) {
    if (holds) parts.fill(2, &one);
    CAPTURE(holds);
    parts.edit(one)->asked = false;
    CHECK(parts.waiting_for(one) == WaitingFor::none);
    CHECK(!parts.waits_for_clients(one));
    parts.edit(one)->asked = true;
    CHECK(parts.waiting_for(one) == WaitingFor::daemon);
  }
}

TEST_CASE("delivery: a client waits for a slot where others hold all, and more would do") {
  Parts parts;
  const Subscription& holder = parts.add(1, 4);
  parts.edit(holder)->terms.window = kSlots;
  const Subscription& other = parts.add(2, 9);
  for (std::uint64_t i = 0; i < kSlots; ++i) parts.fill(i, &holder);
  CHECK(parts.waiting_for(other) == WaitingFor::slot);
  CHECK(parts.waiting_for(holder) == WaitingFor::client);  // it would have one if it released one
  CHECK(parts.slots_to_set() == 6);  // two for each of both, one that goes round, one more
  parts.edit(other)->waiting.become(WaitingFor::slot, kNow);
  parts.edit(holder)->waiting.become(WaitingFor::slot, kNow);
  CHECK(parts.slots_to_set() == kSlots + 3);  // for those two, and one that goes round
  parts.edit(other)->client.abilities = kAbilities;
  CHECK(parts.waiting_for(other) == WaitingFor::none);
}

TEST_CASE("delivery: a client waits for others where all slots are held, and not for a plan") {
  Parts parts;
  const Subscription& holder = parts.add(1, 4);
  parts.edit(holder)->terms.window = kSlots;
  const Subscription& other = parts.add(2, 9);
  CHECK(!parts.waits_for_clients(other));
  for (std::uint64_t i = 0; i < kSlots; ++i) parts.fill(i, &holder);
  CHECK(parts.waits_for_clients(other));
  CHECK(!parts.waits_for_clients(holder));
  parts.edit(other)->stage = Phase::applied;
  CHECK(!parts.waits_for_clients(other));
}

TEST_CASE(
    "delivery: a worker with nothing waits for others at an epoch's end, once that is planned") {
  Parts parts;
  const Subscription& worker = parts.add(1, 0);
  parts.edit(worker)->terms.mode = wire::Mode::queue;
  parts.edit(worker)->cursor = Cursor(whole_share(1), Epoch{1}, Step{0});
  CHECK(!parts.waits_for_clients(worker));  // for a plan
  parts.plans.made(ten_steps(Epoch{1}), kNow);
  CHECK(parts.waits_for_clients(worker));  // for the end of epoch 0
  const Subscription& other = parts.add(2, 10);
  CHECK(!parts.waits_for_clients(other));  // for the next epoch
}

TEST_CASE("delivery: the reason why a client waits is said") {
  Parts parts;
  const Subscription& one = parts.add(1, 3);
  parts.edit(one)->cursor = Cursor(whole_share(1), Epoch{7}, Step{0});
  CHECK(parts.reason(one) == "epoch 7 is being planned");
  parts.edit(one)->cursor = Cursor(whole_share(1), Epoch{0}, Step{10});
  CHECK(parts.reason(one) == "a batch that is about to come");
  parts.edit(one)->cursor = Cursor(whole_share(1), Epoch{0}, Step{3});
  const auto answer = parts.scheduler.demand({batch(3), true}, parts.cohorts(), kNow);
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
  parts.edit(one)->stage = Phase::over;
  CHECK(parts.reason(one) == "nothing: its epochs are over");
  parts.life.fail({ErrorCode::io_error, "the disk is away"});
  CHECK(parts.reason(one) == "the disk is away");
}

TEST_CASE("delivery: one that waits for a slot is told which clients hold them") {
  Parts parts;
  const Subscription& holder = parts.add(1, 4);
  parts.edit(holder)->terms.window = kSlots;
  for (std::uint64_t i = 0; i < kSlots; ++i) parts.fill(i, &holder);
  parts.edit(holder)->moved = kNow - 7s;
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
