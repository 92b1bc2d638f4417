#include "daemon/delivery/feed/plans/plan_store.h"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <vector>

#include "tests/delivery/feed/names.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMost = 2;

constexpr double kTook = 0.1;

/// An epoch of ten steps, which took so many seconds.
PlannedEpoch planned(std::uint64_t epoch, std::uint64_t data = 7, double seconds = 0.5) {
  static const std::vector<std::uint32_t> lengths(20, 5);
  PlanSettings settings;
  settings.size = 2;
  auto plan = plan_epoch(lengths, settings, Epoch{epoch});
  REQUIRE(plan);
  const auto source =
      std::make_shared<const EpochSource>(Epoch{epoch}, Fingerprint{data, 1, 2}, nullptr, *plan);
  return {source, source, {}, {}, seconds};
}

std::set<Epoch> epochs(std::initializer_list<std::uint64_t> numbers) {
  std::set<Epoch> all;
  for (const std::uint64_t number : numbers) all.insert(Epoch{number});
  return all;
}

/// Clients that could take a batch stand in each, and come to no other.
PlanNeeds standing(const std::set<Epoch>& where) { return {where, where, where}; }

/// Clients that could take a batch stand in these epochs, and come to those that follow.
PlanNeeds needs_in(const std::set<Epoch>& epochs) {
  PlanNeeds needs{epochs, epochs, epochs};
  for (const Epoch epoch : epochs) needs.next.insert(Epoch{epoch.value + 1});
  return needs;
}

const Error kPasses{ErrorCode::io_error, "the disk is away"};

}  // namespace

TEST_CASE("delivery: one plan is under way at a time, of the epoch at hand and then of the next") {
  PlanStore plans(false);
  const PlanNeeds needs = needs_in({Epoch{3}});
  CHECK(plans.next(needs, kMost, kNow).plan == Epoch{3});
  CHECK(plans.is_planning());
  CHECK(!plans.next(needs, kMost, kNow).plan);
  CHECK(!plans.made(planned(3), kNow));
  CHECK(plans.steps(Epoch{3}) == 10);
  CHECK(plans.seconds() == 0.5);
  CHECK(plans.misses_any(needs));
  CHECK(plans.next(needs, kMost, kNow).plan == Epoch{4});
  plans.made(planned(4), kNow);
  CHECK(!plans.misses_any(needs));
  CHECK(!plans.next(needs, kMost, kNow).plan);
}

TEST_CASE("delivery: a plan that goes for another is there no longer") {
  PlanStore plans(false);
  for (const std::uint64_t epoch : {0U, 1U}) plans.made(planned(epoch), kNow);
  const auto choice = plans.next(needs_in({Epoch{0}, Epoch{5}}), kMost, kNow);
  CHECK(choice.plan == Epoch{5});
  CHECK(choice.evict == Epoch{1});
  CHECK(!plans.has(Epoch{1}));
  CHECK(plans.has(Epoch{0}));
}

TEST_CASE("delivery: a plan that failed is tried again at its time, and is late when it comes") {
  PlanStore plans(false);
  const PlanNeeds needs = needs_in({Epoch{0}});
  CHECK(plans.next(needs, kMost, kNow).plan == Epoch{0});
  plans.failed(Epoch{0}, kPasses, kNow);
  CHECK(plans.trouble(needs.stood_in) == "epoch 0 cannot be planned now: the disk is away");
  CHECK(plans.refusal(Epoch{0}, kNow) == nullptr);
  CHECK(plans.next(needs, kMost, kNow).plan == Epoch{1});  // holds up no other
  plans.made(planned(1), kNow);
  CHECK(plans.next(needs, kMost, kNow).look_again == kNow + 250ms);
  CHECK(plans.next(needs, kMost, kNow + 250ms).plan == Epoch{0});
  CHECK(plans.made(planned(0), kNow + 300ms));
  CHECK(plans.trouble(needs.stood_in).empty());
}

TEST_CASE("delivery: a client in an epoch that is infeasible is refused, and that is no trouble") {
  PlanStore plans(false);
  plans.failed(Epoch{0}, {ErrorCode::infeasible, "no step"}, kNow);
  REQUIRE(plans.refusal(Epoch{0}, kNow) != nullptr);
  CHECK(plans.refusal(Epoch{0}, kNow)->message == "no step");
  CHECK(plans.trouble({Epoch{0}}).empty());
}

TEST_CASE("delivery: what a client without a plan waits for is said") {
  PlanStore plans(false);
  CHECK(plans.reason_to_wait(Epoch{4}, 2, 8) == "epoch 4 is being planned");
  CHECK(plans.reason_to_wait(Epoch{4}, 9, 8) ==
        "the turn of epoch 4: clients stand in 9 epochs, and 8 plans are kept at a time");
  plans.failed(Epoch{4}, kPasses, kNow);
  CHECK(plans.reason_to_wait(Epoch{4}, 2, 8) ==
        "epoch 4, which cannot be planned now and is tried again: the disk is away");
}

TEST_CASE("delivery: a plan of other data than those that were decided meanwhile is of no use") {
  PlanStore plans(true);
  const PlanNeeds needs = needs_in({Epoch{0}});
  CHECK(plans.next(needs, kMost, kNow).plan == Epoch{0});
  CHECK(!plans.is_outdated(Epoch{0}, 7));
  CHECK(plans.decide(Epoch{0}, 8));
  CHECK(!plans.is_outdated(Epoch{0}, 8));
  CHECK(plans.is_outdated(Epoch{0}, 7));
  CHECK(plans.is_planning());
  plans.outdated();
  CHECK(plans.next(needs, kMost, kNow).plan == Epoch{0});
}

TEST_CASE("delivery: a feed begins with its first plan, unless that is of other data") {
  PlanStore plans(true);
  plans.begin(planned(0));
  CHECK(plans.has(Epoch{0}));
  CHECK(plans.data_of(Epoch{0}) == 7);
  PlanStore resumed(true);
  resumed.decide(Epoch{0}, 8);
  resumed.begin(planned(0));
  CHECK(!resumed.has(Epoch{0}));
  CHECK(resumed.data_of(Epoch{0}) == 8);
  resumed.data_gone(Epoch{0});
  CHECK(!resumed.data_of(Epoch{0}));
}

TEST_CASE("delivery: the plan of the last epoch that a client stood in stays when all are gone") {
  PlanStore plans(false);
  plans.begin(planned(0));
  for (const std::uint64_t epoch : {1U, 2U}) plans.made(planned(epoch), kNow);
  std::vector<PlannedEpoch> evicted;
  CHECK(plans.keep(needs_in({Epoch{1}}), evicted) == epochs({1, 2}));
  CHECK(!plans.has(Epoch{0}));
  REQUIRE(evicted.size() == 1);
  CHECK(evicted.front().source->epoch == Epoch{0});
  CHECK(plans.keep({}, evicted) == epochs({1}));
  CHECK(!plans.has(Epoch{2}));
}

TEST_CASE("delivery: data that an epoch was decided to be of are forgotten with the epoch's use") {
  PlanStore plans(true);
  plans.decide(Epoch{4}, 8);
  plans.decide(Epoch{5}, 9);
  const auto in_use = [](Epoch epoch) { return epoch == Epoch{5}; };
  CHECK(plans.forget_data(in_use) == std::vector{Epoch{4}});
  CHECK(!plans.data_of(Epoch{4}));
  CHECK(plans.data_of(Epoch{5}) == 9);
  plans.decide_again(Epoch{5}, 10);
  CHECK(plans.data_of(Epoch{5}) == 10);
}

TEST_CASE("delivery: as many plans are kept as memory allows, 8 to 64") {
  CHECK(PlanStore::most_of(1) == 64);
  CHECK(PlanStore::most_of(std::uint64_t{1} << 20) == 32);
  CHECK(PlanStore::most_of(std::uint64_t{1} << 30) == 8);
}

TEST_CASE("delivery: plans of epochs that a client stands in come before those of the next ones") {
  PlanNeeds needs = standing(epochs({3, 7}));
  needs.next = epochs({3, 4, 7, 8});
  PlanStore plans(false);
  CHECK(plans.next(needs, 8, kNow).plan == Epoch{3});
  plans.made(planned(3), kNow);
  CHECK(plans.next(needs, 8, kNow).plan == Epoch{7});
  plans.made(planned(7), kNow);
  CHECK_FALSE(plans.next(needs, 2, kNow).plan);
  CHECK(plans.next(needs, 8, kNow).plan == Epoch{4});
  PlanStore other(false);
  for (const std::uint64_t epoch : {3U, 4U}) other.made(planned(epoch), kNow);
  const auto instead = other.next(needs, 2, kNow);
  CHECK(instead.evict == Epoch{4});
  CHECK(instead.plan == Epoch{7});
}

TEST_CASE("delivery: where plans take turns each epoch has one, and the longest missing is next") {
  PlanStore plans(false);
  const std::set<Epoch> all = epochs({1, 2, 3, 4, 5});
  std::map<Epoch, int> made;
  auto now = kNow;
  for (int i = 0; i < 100; ++i) {
    const auto choice = plans.next(standing(all), 2, now);
    if (choice.plan) {
      ++made[*choice.plan];
      plans.made(planned(choice.plan->value, 7, kTook), now);
    } else {
      REQUIRE(choice.look_again);
      CHECK(*choice.look_again > now);
      now = *choice.look_again;
    }
    CHECK(plans.numbers().size() <= 2);
  }
  REQUIRE(made.size() == all.size());
  for (const auto& [epoch, times] : made) CHECK(times >= made.at(Epoch{1}) - 1);
}

namespace {

/// Of epochs 1 and 2, which took ten seconds each.
PlanStore two_plans() {
  PlanStore plans(false);
  for (const std::uint64_t epoch : {1U, 2U}) plans.made(planned(epoch, 7, 10.0), kNow);
  return plans;
}

}  // namespace

TEST_CASE("delivery: a plan has its turn, and one of which no batch can be taken goes first") {
  PlanNeeds needs = standing(epochs({1, 2, 3}));
  const auto waits = two_plans().next(needs, 2, kNow + 39s);
  CHECK_FALSE(waits.plan);
  CHECK(waits.look_again == kNow + 40s);
  CHECK(two_plans().next(needs, 2, kNow + 40s).evict == Epoch{1});
  needs.now = epochs({1, 3});
  CHECK(two_plans().next(needs, 2, kNow).evict == Epoch{2});
  needs.now = epochs({1, 2});  // the client that waits for epoch 3 holds all it may
  CHECK_FALSE(two_plans().next(needs, 2, kNow + 1h).evict);
}

TEST_CASE("delivery: the plan that a feed begins with has its turn, too") {
  PlanStore plans(false);
  plans.begin(planned(0));
  const PlanNeeds needs = standing(epochs({0, 1}));
  CHECK(plans.next(needs, 1, kNow).look_again == kNow + PlanStore::kLeastTurn);
  CHECK(plans.next(needs, 1, kNow + PlanStore::kLeastTurn).evict == Epoch{0});
}

TEST_CASE("delivery: what may pass is tried again, ever more rarely; what is infeasible is not") {
  PlanStore plans(false);
  const PlanNeeds needs = standing(epochs({5}));
  for (int i = 0; i < 20; ++i) plans.failed(Epoch{5}, kPasses, kNow);
  CHECK(plans.next(needs, 8, kNow).look_again == kNow + PlanStore::kLongestPause);
  CHECK(plans.next(needs, 8, kNow + PlanStore::kLongestPause).plan == Epoch{5});

  plans.failed(Epoch{6}, {ErrorCode::infeasible, "no step"}, kNow);
  CHECK(plans.refusal(Epoch{6}, kNow + 24h) != nullptr);
  CHECK_FALSE(plans.next(standing(epochs({6})), 8, kNow).look_again);
}

TEST_CASE("delivery: what is infeasible is tried again where data may grow") {
  PlanStore plans(true);
  plans.failed(Epoch{6}, {ErrorCode::infeasible, "no step"}, kNow);
  CHECK(plans.refusal(Epoch{6}, kNow) != nullptr);
  CHECK(plans.refusal(Epoch{6}, kNow + PlanStore::kFirstPause) == nullptr);
}

TEST_CASE("delivery: failures that are remembered are bounded") {
  PlanStore plans(false);
  for (std::uint64_t i = 0; i <= PlanStore::kMostFailures; ++i) {
    plans.failed(Epoch{i}, {ErrorCode::infeasible, "no step"}, kNow);
  }
  CHECK(plans.refusal(Epoch{0}, kNow) == nullptr);
  CHECK(plans.refusal(Epoch{PlanStore::kMostFailures}, kNow) != nullptr);
}

TEST_CASE("delivery: the data of an epoch are those that were decided first") {
  PlanStore plans(true);
  CHECK(plans.decide(Epoch{3}, 11));
  CHECK_FALSE(plans.decide(Epoch{3}, 12));
  CHECK(plans.decide(Epoch{3}, 11));
  CHECK(plans.data_of(Epoch{3}) == 11);
  CHECK_FALSE(plans.data_of(Epoch{4}));
}

TEST_CASE("delivery: of data that were planned and are not in use the latest are remembered") {
  PlanStore plans(true);
  const auto in_use = [](Epoch epoch) { return epoch == Epoch{2} || epoch == Epoch{3}; };
  for (std::uint64_t i = 0; i < PlanStore::kMostIdle + 10; ++i) {
    plans.decide(Epoch{i}, 11);
    plans.made(planned(i, 11), kNow);
  }
  std::vector<PlannedEpoch> evicted;
  plans.keep(standing(epochs({3})), evicted);
  const auto forgotten = plans.forget_data(in_use);
  CHECK(forgotten.size() == 8);
  CHECK(forgotten.front() == Epoch{0});
  CHECK(plans.data_of(Epoch{2}) == 11);
  CHECK(plans.data_of(Epoch{PlanStore::kMostIdle + 9}) == 11);
}

namespace {

/// A session with subscriptions in so many epochs from `first` on.
void add_session(PlanNeeds& needs, std::uint64_t session, std::uint64_t first,
                 std::uint64_t count) {
  for (std::uint64_t epoch = first; epoch < first + count; ++epoch) {
    for (auto* all : {&needs.now, &needs.stood_in, &needs.next}) all->insert(Epoch{epoch});
    needs.sessions[Epoch{epoch}].insert(SessionId{session});
  }
}

/// Plans as a feed does until `epoch` has a plan; how many others came before.
std::size_t plans_before(PlanStore& plans, const PlanNeeds& needs, std::size_t most, Epoch epoch,
                         PlanStore::Time& now) {
  for (std::size_t before = 0; before < 10'000;) {
    const auto choice = plans.next(needs, most, now);
    if (choice.plan) {
      now += 100ms;
      plans.made(planned(choice.plan->value, 7, kTook), now);
      if (*choice.plan == epoch) return before;
      ++before;
    } else if (choice.look_again) {
      now = *choice.look_again;
    } else {
      return SIZE_MAX;
    }
  }
  return SIZE_MAX;
}

}  // namespace

TEST_CASE("delivery: a session that wants many epochs planned does not make others wait for them") {
  for (const std::size_t most : {8U, 64U}) {
    PlanStore plans(false);
    PlanNeeds needs;
    for (std::uint64_t session = 1; session <= 4; ++session) {
      add_session(needs, session, session * 1'000, 64);
    }
    auto now = kNow;
    CHECK(plans_before(plans, needs, most, Epoch{4'063}, now) < 10'000);
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {  // one that reads epoch after epoch
      PlanNeeds with = needs;
      add_session(with, 9, epoch, 1);
      CHECK(plans_before(plans, with, most, Epoch{epoch}, now) <= 4);
    }
  }
}

TEST_CASE("delivery: the plan of a session with one epoch is seldom evicted for one of many") {
  PlanStore plans(false);
  PlanNeeds needs;
  add_session(needs, 1, 0, 1);
  add_session(needs, 2, 100, 64);
  auto now = kNow;
  CHECK(plans_before(plans, needs, 8, Epoch{0}, now) <= 1);
  int evictions = 0;
  int own_evictions = 0;
  for (int i = 0; i < 500; ++i) {
    const auto choice = plans.next(needs, 8, now);
    evictions += choice.evict ? 1 : 0;
    own_evictions += choice.evict == Epoch{0} ? 1 : 0;
    if (choice.plan) {
      plans.made(planned(choice.plan->value, 7, kTook), now);
      continue;
    }
    REQUIRE(choice.look_again.value() > now);
    now = *choice.look_again;
  }
  CHECK(evictions > 100);
  CHECK(own_evictions <= evictions / 30);
}

TEST_CASE("delivery: of a session's epochs the one comes first that it reads already") {
  PlanStore plans(false);
  PlanNeeds needs;
  add_session(needs, 1, 0, 5);
  needs.read = epochs({3});
  CHECK(plans.next(needs, 8, kNow).plan == Epoch{3});
}
