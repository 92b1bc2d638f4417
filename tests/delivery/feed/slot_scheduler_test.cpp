#include "daemon/delivery/feed/core/slots/slot_scheduler.h"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/delivery/feed/names.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kSteps = 40;
constexpr unsigned kManyThreads = 100;

/// Those from `first` to `last`, in epoch 0.
std::vector<BatchId> batches(std::uint64_t first, std::uint64_t last) {
  std::vector<BatchId> all;
  for (std::uint64_t i = first; i <= last; ++i) all.push_back(batch(i));
  return all;
}

std::vector<std::uint64_t> indices(const std::vector<SlotScheduler::Assignment>& all) {
  std::vector<std::uint64_t> found;
  for (const auto& each : all) found.push_back(each.id.index.value);
  return found;
}

/// A replica per entry of `steps`, each at a place of its own.
struct Replicas {
  explicit Replicas(const std::vector<std::uint64_t>& steps) {
    states.resize(steps.size());
    places.reserve(steps.size());
    for (const std::uint64_t step : steps) {
      places.push_back({{{SessionId{places.size() + 1}, {1}}, &states[places.size()]}});
      const Cursor cursor(whole_share(1), Epoch{0}, Step{step});
      cohorts.push_back({{cursor, kSteps, 0, nullptr, {}}, &places.back(), false});
    }
  }
  std::vector<StragglerState> states;
  std::vector<Members> places;
  std::vector<Cohort> cohorts;
};

struct Slots {
  explicit Slots(std::uint32_t slots, unsigned threads = kManyThreads)
      : scheduler(std::make_shared<SlotGeneration>(ArenaNumber{1}, *Arena::create(slots, 4096),
                                                   std::make_shared<MemoryBudget>()),
                  {threads, 50ms}) {}

  std::vector<std::uint64_t> ahead(const Replicas& replicas) {
    const auto all = scheduler.ahead(replicas.cohorts, kNow);
    for (const auto& each : all) scheduler.finished(each, AssembledBatch{0, 64, 1, 1, 1, 0, {}});
    return indices(all);
  }
  void hold(std::uint64_t index) { scheduler.cache().hold(*scheduler.cache().find(batch(index))); }

  SlotScheduler scheduler;
};

}  // namespace

TEST_CASE("delivery: slots are filled in the order of distance from the nearest cohort") {
  Slots slots(6);
  CHECK(slots.ahead(Replicas({3, 20})) == std::vector<std::uint64_t>{3, 20, 4, 21, 5, 22});
}

TEST_CASE("delivery: what two cohorts need is assembled once") {
  Slots slots(4);
  CHECK(slots.ahead(Replicas({3, 4})) == std::vector<std::uint64_t>{3, 4, 5, 6});
}

TEST_CASE("delivery: one batch more than threads is under way") {
  Slots slots(8, 2);
  const Replicas one({0});
  const auto first = slots.scheduler.ahead(one.cohorts, kNow);
  CHECK(indices(first) == std::vector<std::uint64_t>{0, 1, 2});
  CHECK(slots.scheduler.ahead(one.cohorts, kNow).empty());
  slots.scheduler.discard(first[1]);
  CHECK(indices(slots.scheduler.ahead(one.cohorts, kNow)) == std::vector<std::uint64_t>{1});
}

TEST_CASE("delivery: a batch takes the place of one that is needed later, and of none before") {
  Slots slots(4);
  CHECK(slots.ahead(Replicas({0})) == std::vector<std::uint64_t>{0, 1, 2, 3});
  CHECK(slots.ahead(Replicas({0})).empty());
  CHECK(slots.ahead(Replicas({2})) == std::vector<std::uint64_t>{4, 5});
  CHECK(!slots.scheduler.cache().find(batch(1)));
  CHECK(slots.scheduler.cache().find(batch(2)));
}

TEST_CASE("delivery: a slot that is held is not taken, whichever client waits") {
  Slots slots(2);
  slots.ahead(Replicas({0}));
  slots.hold(0);
  slots.hold(1);
  const Replicas far({9});
  CHECK(slots.ahead(far).empty());
  CHECK(!slots.scheduler.demand({batch(9)}, far.cohorts, kNow).assignment);
}

TEST_CASE("delivery: a demand that follows no plan may push out anything that is not held") {
  Slots slots(2);
  const Replicas near({0});
  slots.ahead(near);
  const auto answer = slots.scheduler.demand({batch(9), false}, near.cohorts, kNow);
  REQUIRE(answer.assignment);
  CHECK(answer.assignment->id == batch(9));
  CHECK(!answer.stragglers.waits);
}

TEST_CASE("delivery: a demand waits for a straggler, and is served once patience is at its end") {
  Slots slots(8);
  const Replicas both({0, 8});
  slots.ahead(Replicas({0}));
  auto answer = slots.scheduler.demand({batch(8)}, both.cohorts, kNow);
  CHECK(answer.stragglers.waits);
  CHECK(!answer.assignment);
  answer = slots.scheduler.demand({batch(8)}, both.cohorts, kNow + 60ms);
  REQUIRE(answer.stragglers.left_behind.size() == 1);
  CHECK(answer.stragglers.left_behind[0].key == SubscriptionKey{SessionId{1}, {1}});
  CHECK(answer.stragglers.left_behind[0].batches == 8);
  REQUIRE(answer.assignment);
  CHECK(answer.assignment->waited == 60ms);
}

TEST_CASE("delivery: a broken batch is not tried again before it is forgotten") {
  Slots slots(2);
  const Replicas one({0});
  const auto begun = slots.scheduler.ahead(one.cohorts, kNow);
  slots.scheduler.failed(begun[0], {ErrorCode::corrupt_record, "torn"});
  REQUIRE(slots.scheduler.broken(batch(0)) != nullptr);
  CHECK(slots.scheduler.broken(batch(0))->message == "torn");
  CHECK(slots.ahead(one).empty());
  slots.scheduler.forget_broken_beside({Epoch{0}});
  CHECK(slots.ahead(one).empty());
  slots.scheduler.forget_broken_beside({Epoch{1}});
  CHECK(slots.ahead(one) == std::vector<std::uint64_t>{0});
}

TEST_CASE("delivery: pages are wished for a round of slots ahead, until all of them are in place") {
  Slots slots(4);
  REQUIRE(slots.scheduler.pages_wanted_after(batch(10), 40, 0) == batches(11, 26));
  CHECK(slots.scheduler.pages_wanted_after(batch(11), 40, 0) == batches(27, 27));
  for (std::uint64_t step = 0; step < 64; ++step) {
    slots.ahead(Replicas({step % kSteps}));
    slots.scheduler.cache().forget_epoch(Epoch{0});
  }
  CHECK(slots.scheduler.pages_wanted_after(batch(12), 40, 0).empty());
  slots.scheduler.note_brought_in(4096);
  CHECK(slots.scheduler.pages_wanted_after(batch(13), 40, 0) == batches(28, 29));
}

TEST_CASE("delivery: 64 batches without a page fault in a row show that all pages are in place") {
  Slots slots(1);
  slots.scheduler.note_brought_in(4096);
  const auto assemble = [&slots](std::uint64_t batches) {
    for (std::uint64_t step = 0; step < batches; ++step) {
      REQUIRE(slots.ahead(Replicas({step % kSteps})).size() == 1);
      slots.scheduler.cache().forget_epoch(Epoch{0});
    }
  };
  assemble(63);
  CHECK_FALSE(slots.scheduler.pages_wanted_after(batch(0), 40, 0).empty());
  assemble(1);
  CHECK(slots.scheduler.pages_wanted_after(batch(1), 40, 0).empty());
}

TEST_CASE("delivery: the pages of a batch that is assembled again are asked for again") {
  Slots slots(4);
  for (const BatchId& id : batches(0, 16)) {
    static_cast<void>(slots.scheduler.pages_wanted_after(id, 40, 0));
  }
  CHECK(slots.scheduler.pages_wanted_after(batch(0), 40, 0) == batches(1, 16));
}

TEST_CASE("delivery: a group is a quarter of the slots, and at least one") {
  CHECK(Slots(16).scheduler.group() == 4);
  CHECK(Slots(4).scheduler.group() == 1);
  CHECK(Slots(3).scheduler.group() == 1);
}

TEST_CASE("delivery: pages of the next epoch's first batches are asked for before this one ends") {
  Slots slots(4);
  auto wanted = batches(39, 39);
  for (std::uint64_t i = 0; i < 15; ++i) wanted.push_back(batch(i, 1));
  CHECK(slots.scheduler.pages_wanted_after(batch(38), 40, 40) == wanted);
  Slots others(4);
  CHECK(others.scheduler.pages_wanted_after(batch(38), 40, 2).size() == 3);
  CHECK(others.scheduler.pages_wanted_after(batch(39), 40, 0).empty());
  // Planned by now.
  CHECK(others.scheduler.pages_wanted_after(batch(39), 40, 40).size() == 14);
}

TEST_CASE("delivery: the pages of a batch that is in a slot are not asked for") {
  Slots slots(2);
  slots.ahead(Replicas({0}));
  CHECK(slots.scheduler.pages_wanted_after(batch(0), 3, 0) == batches(2, 2));
}

TEST_CASE("delivery: slots ahead are those that are ready, not held, and needed from here on") {
  Slots slots(4);
  slots.ahead(Replicas({0}));
  slots.hold(1);
  CHECK(slots.scheduler.slots_ahead(Replicas({0}).cohorts) == 3);
  CHECK(slots.scheduler.slots_ahead(Replicas({2}).cohorts) == 2);
  CHECK(slots.scheduler.slots_ahead(Replicas({9}).cohorts) == 0);
}

TEST_CASE("delivery: larger slots take over, and the smaller ones last while a batch is in them") {
  Slots slots(2);
  const Replicas one({0});
  auto begun = slots.scheduler.ahead(one.cohorts, kNow);
  slots.scheduler.grow(std::make_shared<SlotGeneration>(ArenaNumber{2}, *Arena::create(2, 8192),
                                                        std::make_shared<MemoryBudget>()));
  CHECK(slots.scheduler.generations().size() == 2);
  CHECK(slots.scheduler.is_missing(batch(0)));
  for (const auto& each : begun) slots.scheduler.discard(each);
  begun.clear();
  CHECK(slots.scheduler.generations().size() == 1);
  CHECK(slots.scheduler.slots()->number == ArenaNumber{2});
}
