#include "daemon/delivery/feed/plans/plan_keeper.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/delivery/feed/names.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kRoom = 2;

/// An epoch of ten steps.
PlannedEpoch planned(std::uint64_t epoch, std::uint64_t data = 7) {
  static const std::vector<std::uint32_t> lengths(20, 5);
  PlanSettings settings;
  settings.size = 2;
  auto plan = plan_epoch(lengths, settings, Epoch{epoch});
  REQUIRE(plan);
  const auto source =
      std::make_shared<const EpochSource>(Epoch{epoch}, Fingerprint{data, 1, 2}, nullptr, *plan);
  return {source, source, {}, {}, 0.5};
}

/// Clients that could take a batch stand in these epochs, and come to those that follow.
PlanNeeds needs_in(const std::set<Epoch>& epochs) {
  PlanNeeds needs{epochs, epochs, epochs};
  for (const Epoch epoch : epochs) needs.next.insert(Epoch{epoch.value + 1});
  return needs;
}

const Error kPasses{ErrorCode::io_error, "the disk is away"};

}  // namespace

TEST_CASE("delivery: one plan is under way at a time, of the epoch at hand and then of the next") {
  PlanKeeper plans(false);
  const PlanNeeds needs = needs_in({Epoch{3}});
  CHECK(plans.next(needs, kRoom, kNow).plan == Epoch{3});
  CHECK(plans.is_planning());
  CHECK(!plans.next(needs, kRoom, kNow).plan);
  CHECK(!plans.made(planned(3), kNow));
  CHECK(plans.steps(Epoch{3}) == 10);
  CHECK(plans.seconds() == 0.5);
  CHECK(plans.misses_any(needs));
  CHECK(plans.next(needs, kRoom, kNow).plan == Epoch{4});
  plans.made(planned(4), kNow);
  CHECK(!plans.misses_any(needs));
  CHECK(!plans.next(needs, kRoom, kNow).plan);
}

TEST_CASE("delivery: a plan that goes for another is there no longer") {
  PlanKeeper plans(false);
  for (const std::uint64_t epoch : {0U, 1U}) plans.made(planned(epoch), kNow);
  const auto choice = plans.next(needs_in({Epoch{0}, Epoch{5}}), kRoom, kNow);
  CHECK(choice.plan == Epoch{5});
  CHECK(choice.drop == Epoch{1});
  CHECK(!plans.has(Epoch{1}));
  CHECK(plans.has(Epoch{0}));
}

TEST_CASE("delivery: a plan that failed is tried again at its time, and is late when it comes") {
  PlanKeeper plans(false);
  const PlanNeeds needs = needs_in({Epoch{0}});
  CHECK(plans.next(needs, kRoom, kNow).plan == Epoch{0});
  plans.failed(Epoch{0}, kPasses, kNow);
  CHECK(plans.trouble(needs.stood_in) == "epoch 0 cannot be planned now: the disk is away");
  CHECK(plans.refusal(Epoch{0}, kNow) == nullptr);
  CHECK(plans.next(needs, kRoom, kNow).plan == Epoch{1});  // holds up no other
  plans.made(planned(1), kNow);
  CHECK(plans.next(needs, kRoom, kNow).look_again == kNow + 250ms);
  CHECK(plans.next(needs, kRoom, kNow + 250ms).plan == Epoch{0});
  CHECK(plans.made(planned(0), kNow + 300ms));
  CHECK(plans.trouble(needs.stood_in).empty());
}

TEST_CASE("delivery: a client in an epoch that is infeasible is refused, and that is no trouble") {
  PlanKeeper plans(false);
  plans.failed(Epoch{0}, {ErrorCode::infeasible, "no step"}, kNow);
  REQUIRE(plans.refusal(Epoch{0}, kNow) != nullptr);
  CHECK(plans.refusal(Epoch{0}, kNow)->message == "no step");
  CHECK(plans.trouble({Epoch{0}}).empty());
}

TEST_CASE("delivery: what a client without a plan waits for is said") {
  PlanKeeper plans(false);
  CHECK(plans.reason_to_wait(Epoch{4}, 2, 8) == "epoch 4 is being planned");
  CHECK(plans.reason_to_wait(Epoch{4}, 9, 8) ==
        "the turn of epoch 4: clients stand in 9 epochs, and 8 plans are kept at a time");
  plans.failed(Epoch{4}, kPasses, kNow);
  CHECK(plans.reason_to_wait(Epoch{4}, 2, 8) ==
        "epoch 4, which cannot be planned now and is tried again: the disk is away");
}

TEST_CASE("delivery: a plan of other data than those that were decided meanwhile is of no use") {
  PlanKeeper plans(true);
  const PlanNeeds needs = needs_in({Epoch{0}});
  CHECK(plans.next(needs, kRoom, kNow).plan == Epoch{0});
  CHECK(!plans.is_outdated(Epoch{0}, 7));
  CHECK(plans.decide(Epoch{0}, 8));
  CHECK(!plans.is_outdated(Epoch{0}, 8));
  CHECK(plans.is_planning());
  CHECK(plans.is_outdated(Epoch{0}, 7));
  CHECK(plans.next(needs, kRoom, kNow).plan == Epoch{0});
}

TEST_CASE("delivery: a feed begins with its first plan, unless that is of other data") {
  PlanKeeper plans(true);
  plans.begin(planned(0));
  CHECK(plans.has(Epoch{0}));
  CHECK(plans.data_of(Epoch{0}) == 7);
  PlanKeeper resumed(true);
  resumed.decide(Epoch{0}, 8);
  resumed.begin(planned(0));
  CHECK(!resumed.has(Epoch{0}));
  CHECK(resumed.data_of(Epoch{0}) == 8);
  resumed.data_gone(Epoch{0});
  CHECK(!resumed.data_of(Epoch{0}));
}

TEST_CASE("delivery: the plan of the last epoch that a client stood in stays when all are gone") {
  PlanKeeper plans(false);
  plans.begin(planned(0));
  for (const std::uint64_t epoch : {1U, 2U}) plans.made(planned(epoch), kNow);
  CHECK(plans.keep(needs_in({Epoch{1}})) == std::set<Epoch>{Epoch{1}, Epoch{2}});
  CHECK(!plans.has(Epoch{0}));
  CHECK(plans.keep({}) == std::set<Epoch>{Epoch{1}});
  CHECK(!plans.has(Epoch{2}));
}

TEST_CASE("delivery: data that an epoch was decided to be of are forgotten with the epoch's use") {
  PlanKeeper plans(true);
  plans.decide(Epoch{4}, 8);
  plans.decide(Epoch{5}, 9);
  const auto in_use = [](Epoch epoch) { return epoch == Epoch{5}; };
  CHECK(plans.forget_data(in_use) == std::vector{Epoch{4}});
  CHECK(!plans.data_of(Epoch{4}));
  CHECK(plans.data_of(Epoch{5}) == 9);
  plans.decide_anew(Epoch{5}, 10);
  CHECK(plans.data_of(Epoch{5}) == 10);
}

TEST_CASE("delivery: as many plans are kept as memory allows, 8 to 64") {
  CHECK(PlanKeeper::room_for(1) == 64);
  CHECK(PlanKeeper::room_for(std::uint64_t{1} << 20) == 32);
  CHECK(PlanKeeper::room_for(std::uint64_t{1} << 30) == 8);
}
