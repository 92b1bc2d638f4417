#include "daemon/delivery/feed/plans/plan_turns.h"

#include <doctest/doctest.h>

#include <vector>

#include "daemon/delivery/feed/plans/epoch_contents.h"
#include "daemon/delivery/feed/plans/plan_failures.h"

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

using Time = PlanTurns::Time;

bool none(Epoch) { return false; }

std::set<Epoch> epochs(std::initializer_list<std::uint64_t> numbers) {
  std::set<Epoch> all;
  for (const std::uint64_t number : numbers) all.insert(Epoch{number});
  return all;
}

/// Somebody could take a batch of each.
PlanNeeds standing(const std::set<Epoch>& where) { return {where, where, where}; }

}  // namespace

TEST_CASE("delivery: plans of epochs that somebody stands in come before those of the next ones") {
  PlanTurns turns;
  PlanNeeds needs = standing(epochs({3, 7}));
  needs.next = epochs({3, 4, 7, 8});
  const auto choose = [&](const std::set<Epoch>& there, std::size_t room) {
    return turns.choose(needs, there, room, none, Time{});
  };
  CHECK(choose({}, 8).plan == Epoch{3});
  CHECK(choose(epochs({3}), 8).plan == Epoch{7});
  CHECK(choose(epochs({3, 7}), 8).plan == Epoch{4});
  CHECK_FALSE(choose(epochs({3, 7}), 2).plan);
  const auto instead = choose(epochs({3, 4}), 2);
  CHECK(instead.drop == Epoch{4});
  CHECK(instead.plan == Epoch{7});
}

TEST_CASE("delivery: where plans take turns each epoch has one, and the longest missing is next") {
  PlanTurns turns;
  const std::set<Epoch> all = epochs({1, 2, 3, 4, 5});
  std::set<Epoch> there;
  std::map<Epoch, int> made;
  Time now{};
  for (int i = 0; i < 100; ++i) {
    const auto choice = turns.choose(standing(all), there, 2, none, now);
    if (choice.drop) there.erase(*choice.drop);
    if (choice.plan) {
      there.insert(*choice.plan);
      ++made[*choice.plan];
      turns.made(*choice.plan, 100ms, now);
    } else {
      REQUIRE(choice.look_again);
      CHECK(*choice.look_again > now);
      now = *choice.look_again;
    }
    CHECK(there.size() <= 2);
  }
  REQUIRE(made.size() == all.size());
  for (const auto& [epoch, times] : made) CHECK(times >= made.at(Epoch{1}) - 1);
}

TEST_CASE("delivery: a plan has its turn, and one that nobody can take a batch of goes first") {
  PlanTurns turns;
  const Time now{};
  turns.made(Epoch{1}, 10s, now);
  turns.made(Epoch{2}, 10s, now);
  const auto waits = turns.choose(standing(epochs({1, 2, 3})), epochs({1, 2}), 2, none, now + 39s);
  CHECK_FALSE(waits.plan);
  CHECK(waits.look_again == now + 40s);
  PlanNeeds needs = standing(epochs({1, 2, 3}));
  needs.now = epochs({1, 3});
  CHECK(turns.choose(needs, epochs({1, 2}), 2, none, now).drop == Epoch{2});
  needs.now = epochs({1, 2});  // who waits for epoch 3 holds all it may
  CHECK_FALSE(turns.choose(needs, epochs({1, 2}), 2, none, now + 1h).drop);
}

TEST_CASE("delivery: an epoch that is not to be planned now holds up no other") {
  PlanTurns turns;
  const auto not_three = [](Epoch epoch) { return epoch == Epoch{3}; };
  CHECK(turns.choose(standing(epochs({3, 4})), {}, 8, not_three, Time{}).plan == Epoch{4});
}

TEST_CASE("delivery: what may pass is tried again, ever more rarely; what is infeasible is not") {
  PlanFailures failures(false);
  const Error passing{ErrorCode::store_unavailable, "away"};
  Time now{};
  failures.add(Epoch{5}, passing, now);
  CHECK(failures.is_pausing(Epoch{5}, now));
  CHECK_FALSE(failures.is_pausing(Epoch{5}, now + PlanFailures::kFirstPause));
  CHECK(failures.refusal(Epoch{5}, now) == nullptr);
  CHECK(failures.next_try(epochs({4, 5}), now) == now + PlanFailures::kFirstPause);
  for (int i = 0; i < 20; ++i) failures.add(Epoch{5}, passing, now);
  CHECK(failures.next_try(epochs({5}), now) == now + PlanFailures::kLongestPause);
  CHECK(failures.clear(Epoch{5}));
  CHECK_FALSE(failures.clear(Epoch{5}));

  failures.add(Epoch{6}, {ErrorCode::infeasible, "no step"}, now);
  CHECK(failures.refusal(Epoch{6}, now + 24h) != nullptr);
  CHECK_FALSE(failures.next_try(epochs({6}), now));
}

TEST_CASE("delivery: what is infeasible is tried again where data may grow") {
  PlanFailures failures(true);
  const Time now{};
  failures.add(Epoch{6}, {ErrorCode::infeasible, "no step"}, now);
  CHECK(failures.refusal(Epoch{6}, now) != nullptr);
  CHECK(failures.refusal(Epoch{6}, now + PlanFailures::kFirstPause) == nullptr);
}

TEST_CASE("delivery: failures that are remembered are bounded") {
  PlanFailures failures(false);
  for (std::uint64_t i = 0; i <= PlanFailures::kMost; ++i) {
    failures.add(Epoch{i}, {ErrorCode::infeasible, "no step"}, Time{});
  }
  CHECK(failures.find(Epoch{0}) == nullptr);
  CHECK(failures.find(Epoch{PlanFailures::kMost}) != nullptr);
}

TEST_CASE("delivery: the data of an epoch are those that were decided first") {
  EpochContents contents;
  CHECK(contents.decide(Epoch{3}, 11));
  CHECK_FALSE(contents.decide(Epoch{3}, 12));
  CHECK(contents.decide(Epoch{3}, 11));
  CHECK(contents.find(Epoch{3}) == 11);
  CHECK_FALSE(contents.find(Epoch{4}));
}

TEST_CASE("delivery: decided data are forgotten when nothing comes of them, or nobody needs them") {
  EpochContents contents;
  contents.decide(Epoch{1}, 11);
  contents.decide(Epoch{2}, 11);
  const auto in_use = [](Epoch epoch) { return epoch == Epoch{2} || epoch == Epoch{3}; };
  CHECK(contents.tidy(in_use) == std::vector{Epoch{1}});
  for (std::uint64_t i = 0; i < EpochContents::kMostIdle + 10; ++i) {
    contents.decide(Epoch{i}, 11);
    contents.planned(Epoch{i});
  }
  const auto forgotten = contents.tidy(in_use);
  CHECK(forgotten.size() == 8);
  CHECK(forgotten.front() == Epoch{0});
  CHECK(contents.find(Epoch{2}) == 11);
  CHECK(contents.find(Epoch{EpochContents::kMostIdle + 9}) == 11);
}

namespace {

/// A session with subscriptions in so many epochs from `first` on.
void add_session(PlanNeeds& needs, std::uint64_t session, std::uint64_t first,
                 std::uint64_t count) {
  for (std::uint64_t epoch = first; epoch < first + count; ++epoch) {
    for (auto* epochs : {&needs.now, &needs.stood_in, &needs.next}) epochs->insert(Epoch{epoch});
    needs.sessions[Epoch{epoch}].insert(SessionId{session});
  }
}

/// Plans as a feed does, each in `took`, until `epoch` has a plan; how many others came before.
std::size_t plans_before(PlanTurns& turns, const PlanNeeds& needs, std::set<Epoch>& there,
                         std::size_t room, Epoch epoch, Time& now) {
  constexpr auto kTook = 100ms;
  for (std::size_t before = 0; before < 10'000;) {
    const auto choice = turns.choose(needs, there, room, none, now);
    if (choice.drop) there.erase(*choice.drop);
    if (choice.plan) {
      now += kTook;
      there.insert(*choice.plan);
      turns.made(*choice.plan, kTook, now);
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
  for (const std::size_t room : {8U, 64U}) {
    PlanTurns turns;
    PlanNeeds needs;
    for (std::uint64_t session = 1; session <= 4; ++session) {
      add_session(needs, session, session * 1'000, 64);
    }
    std::set<Epoch> there;
    Time now{};
    CHECK(plans_before(turns, needs, there, room, Epoch{4'063}, now) < 10'000);
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {  // one that reads epoch after epoch
      PlanNeeds with = needs;
      add_session(with, 9, epoch, 1);
      CHECK(plans_before(turns, with, there, room, Epoch{epoch}, now) <= 4);
    }
  }
}

TEST_CASE("delivery: the plan of a session with one epoch is seldom dropped for one of many") {
  PlanTurns turns;
  PlanNeeds needs;
  add_session(needs, 1, 0, 1);
  add_session(needs, 2, 100, 64);
  std::set<Epoch> there;
  Time now{};
  CHECK(plans_before(turns, needs, there, 8, Epoch{0}, now) <= 1);
  int drops = 0;
  int own_drops = 0;
  for (int i = 0; i < 500; ++i) {
    const auto choice = turns.choose(needs, there, 8, none, now);
    if (!choice.plan) REQUIRE(choice.look_again.value() > now);
    drops += choice.drop ? 1 : 0;
    own_drops += choice.drop == Epoch{0} ? 1 : 0;
    if (choice.drop) there.erase(*choice.drop);
    if (choice.plan) there.insert(*choice.plan);
    if (choice.plan) turns.made(*choice.plan, 100ms, now);
    if (!choice.plan) now = *choice.look_again;
  }
  CHECK(drops > 100);
  CHECK(own_drops <= drops / 30);
}

TEST_CASE("delivery: of a session's epochs the one comes first that it reads already") {
  PlanTurns turns;
  PlanNeeds needs;
  add_session(needs, 1, 0, 5);
  needs.read = epochs({3});
  CHECK(turns.choose(needs, {}, 8, none, Time{}).plan == Epoch{3});
}
