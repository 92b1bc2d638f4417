#include "daemon/delivery/feed/core/subscription_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/delivery/feed/names.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

using Phase = Subscription::Stage;
using Habit = Subscription::Habit;
using Keys = std::vector<SubscriptionKey>;

const std::set<Epoch> kPlanned{Epoch{0}, Epoch{3}, Epoch{5}, Epoch{9}};

Subscription replica(std::uint64_t step, std::uint64_t epoch = 0) {
  Subscription one({}, {1}, Cursor(whole_share(1), Epoch{epoch}, Step{step}));
  one.stage = Phase::in_epoch;
  one.terms.window = 2;
  return one;
}

Subscription rank(std::uint32_t number, std::uint32_t ranks) {
  Subscription one = replica(0);
  one.terms.mode = wire::Mode::sharded;
  one.terms.rank = number;
  one.terms.ranks = ranks;
  return one;
}

Subscription of(const SubscriptionKey& key, Subscription one) {
  one.client.session = key.session;
  one.number = key.number;
  return one;
}

/// A table of subscriptions that stand somewhere in planned epochs.
struct Table : SubscriptionTable {
  explicit Table(const std::vector<std::pair<SubscriptionKey, Subscription>>& all)
      : SubscriptionTable(8) {
    set_planned(kPlanned);
    for (const auto& [key, one] : all) add(of(key, one));
  }
};

}  // namespace

TEST_CASE("delivery: a subscription's stage says what it wants, and whether it stands anywhere") {
  struct Row {
    Phase stage;
    bool planned;
    bool wants;
    bool stands;
  };
  for (const Row& row : {
           Row{Phase::applied, false, true, false},
           Row{Phase::applied, true, true, false},
           Row{Phase::in_epoch, true, true, true},
           Row{Phase::in_epoch, false, false, true},
           Row{Phase::between_epochs, true, true, true},
           Row{Phase::between_epochs, false, false, true},
           Row{Phase::over, true, false, false},
       }) {
    CAPTURE(static_cast<int>(row.stage));
    CAPTURE(row.planned);
    Subscription one = replica(3);
    one.stage = row.stage;
    SubscriptionTable table(8);
    if (row.planned) table.set_planned(kPlanned);
    table.add(of(client(1), one));
    CHECK(admission_state_of(one, row.planned).wants.has_value() == row.wants);
    CHECK(table.wanting(batch(3)).size() == (row.wants ? 1 : 0));
    CHECK(table.places().size() == (row.stands ? 1 : 0));
  }
}

TEST_CASE("delivery: data that a client named bind it until its epoch is over") {
  Subscription one = replica(0);
  one.stage = Phase::applied;
  CHECK(!one.is_bound_to_data());
  one.terms.resumes = true;
  CHECK(one.is_bound_to_data());
  one.stage = Phase::in_epoch;
  one.terms.resumes = false;
  CHECK(one.is_bound_to_data());
  one.stage = Phase::between_epochs;
  CHECK(!one.is_bound_to_data());
}

TEST_CASE("delivery: a program's habit is what it was last seen to do without") {
  Subscription one = replica(0);
  one.note_empty_handed();
  CHECK(one.looks_on());  // it never had a batch
  one.leases[{7}] = {};
  one.speak();
  CHECK(one.habit == Habit::keeps_last);
  one.note_empty_handed();
  CHECK(one.habit == Habit::keeps_last);
  one.leases.clear();
  one.note_empty_handed();
  CHECK(one.habit == Habit::releases_first);
  one.speak();
  CHECK(one.habit == Habit::releases_first);
  CHECK(admission_state_of(one, true).releases_first);
}

TEST_CASE("delivery: a token makes two sessions one owner, and without one each is its own") {
  Subscription one = of(client(1), replica(0));
  Subscription other = of(client(2), replica(0));
  CHECK(one.owner() != other.owner());
  one.client.token = other.client.token = 7;
  CHECK(one.owner() == other.owner());
}

TEST_CASE("delivery: a batch is wanted by those whose next it is, and by those of its queue") {
  Subscription worker = replica(0);
  worker.terms.mode = wire::Mode::queue;
  const Table table({{client(1), replica(4)}, {client(2), worker}, {client(3), replica(5)}});
  CHECK(table.wanting(batch(4)) == Keys{client(1), client(2)});
  CHECK(table.wanting(batch(5)) == Keys{client(3), client(2)});
  CHECK(table.wanting(batch(4, 1)).empty());
}

TEST_CASE("delivery: a session's subscriptions are found, and those of others are not") {
  Table table({{client(1), replica(0)}, {client(2, 1), replica(0)}, {client(2, 9), replica(0)}});
  CHECK(table.keys_of(SessionId{2}) == Keys{client(2, 1), client(2, 9)});
  table.remove(client(2, 1));
  CHECK(table.keys_of(SessionId{2}) == Keys{client(2, 9)});
  CHECK(table.find(client(2, 1)) == nullptr);
  CHECK(table.places().begin()->second.size() == 2);
}

TEST_CASE("delivery: the epochs that are needed are those stood in, and those that come next") {
  Subscription full = replica(0, 3);
  full.leases = {{{1}, {}}, {{2}, {}}};
  Subscription last = replica(0, 5);
  last.epochs_left = 1;
  Subscription over = replica(0, 9);
  over.stage = Phase::over;
  const PlanNeeds needs = Table({{client(1), full}, {client(2), last}, {client(3), over}}).needs();
  CHECK(needs.now == std::set<Epoch>{Epoch{5}});
  CHECK(needs.stood_in == std::set<Epoch>{Epoch{3}, Epoch{5}});
  CHECK(needs.next == std::set<Epoch>{Epoch{3}, Epoch{4}, Epoch{5}});
  CHECK(needs.sessions.at(Epoch{3}) == std::set<SessionId>{SessionId{1}});
  CHECK(needs.read.empty());
}

TEST_CASE("delivery: one that leads goes on when the slowest has moved, and not before") {
  Table table({{client(1), replica(0)}, {client(2), replica(9)}});
  REQUIRE(table.leading_once_slowest_moved());
  table.edit(client(2))->blocked_by = BlockedBy::lead;
  CHECK(!table.leading_once_slowest_moved());
  table.edit(client(1))->cursor.advance();
  CHECK(table.leading_once_slowest_moved() == Keys{client(2)});
  CHECK(!table.leading_once_slowest_moved());
}

TEST_CASE("delivery: one that the rule on slots blocked is looked at once something has changed") {
  Table table({{client(1), replica(0)}, {client(2), replica(9)}});
  CHECK(table.blocked_once_loosened(true).empty());
  table.edit(client(2))->blocked_by = BlockedBy::slots;
  CHECK(table.blocked_once_loosened(false) == Keys{client(2)});
  CHECK(table.blocked_once_loosened(false).empty());
  CHECK(table.blocked_once_loosened(true) == Keys{client(2)});
  table.remove(client(1));
  CHECK(table.blocked_once_loosened(false) == Keys{client(2)});
  table.edit(client(2))->blocked_by = BlockedBy::nothing;
  CHECK(table.blocked_once_loosened(true).empty());
}

TEST_CASE("delivery: a subscription is short that waits or has read half of its window") {
  Table table({{client(1), replica(0)}});
  CHECK(table.any_short());
  const auto hold = [&](std::uint64_t batches) {
    const auto one = table.edit(client(1));
    one->leases.clear();
    for (std::uint64_t i = 0; i < batches; ++i) one->leases[{i + 1}] = {};
    one->speak();
  };
  table.edit(client(1))->terms.window = 8;
  hold(4);
  CHECK(table.any_short());
  hold(5);
  CHECK(!table.any_short());
  table.edit(client(1))->asked = true;
  CHECK(table.any_short());
  hold(8);  // it can take no more
  CHECK(!table.any_short());
  hold(0);
  table.edit(client(1))->blocked_by = BlockedBy::lead;  // a batch would change nothing
  CHECK(!table.any_short());
  table.edit(client(1))->blocked_by = BlockedBy::nothing;
  CHECK(table.any_short());
  table.remove(client(1));
  CHECK(!table.any_short());
}

TEST_CASE("delivery: a job needs a slot for each of its ranks, those that come again but once") {
  const Table table({{client(1), rank(0, 4)}, {client(2), rank(1, 4)}});
  const Job job{4, 0};
  CHECK(table.slots_needed_with(job, 2) == 4);
  CHECK(table.slots_needed_with(job, 1) == 3);
}

TEST_CASE("delivery: an epoch begins and ends once, with the first that comes to it") {
  SubscriptionTable table(8);
  CHECK(table.is_first_to_begin(Epoch{2}));
  CHECK(!table.is_first_to_begin(Epoch{2}));
  CHECK(!table.is_first_to_begin(Epoch{1}));
  CHECK(table.is_first_to_end(Epoch{2}));
  CHECK(table.is_first_to_begin(Epoch{3}));
}

TEST_CASE("delivery: slots that a session left count as held until its process lets go") {
  const auto slots = std::make_shared<SlotGeneration>(ArenaNumber{1}, *Arena::create(2, 4096),
                                                      std::make_shared<MemoryBudget>());
  ClientInfo gone;
  gone.session = SessionId{5};
  Table table({{client(1), replica(0)}});
  const std::size_t needed = table.admission().slots_needed();
  table.orphan(gone, {{slots, SlotIndex{0}}, {slots, SlotIndex{1}}});
  CHECK(table.admission().slots_needed() == needed + 2);
  CHECK(table.orphaned().slots_of(SessionId{5}) == 2);
  CHECK(table.release_orphaned(SessionId{5}).size() == 2);
  CHECK(table.admission().slots_needed() == needed);
}

TEST_CASE("delivery: those in step stand at one place, and one that moves leaves it") {
  Table table({{client(1), replica(7)}, {client(2), replica(7)}, {client(3), replica(7)}});
  CHECK(table.places().size() == 1);
  table.edit(client(2))->cursor.advance();
  CHECK(table.places().size() == 2);
  table.remove(client(1));
  table.remove(client(3));
  CHECK(table.places().size() == 1);
}

TEST_CASE("delivery: the slowest is the last of those that have a position") {
  Subscription worker = replica(3);
  worker.terms.mode = wire::Mode::queue;
  Table table({{client(1), replica(7)}, {client(2), worker}});
  CHECK(table.slowest() == Position{Epoch{0}, Step{7}});
  table.add(of(client(3), replica(5)));
  CHECK(table.slowest() == Position{Epoch{0}, Step{5}});
  for (int i = 0; i < 4; ++i) table.edit(client(3))->cursor.advance();
  CHECK(table.slowest() == Position{Epoch{0}, Step{7}});
  table.clear();
  CHECK(!table.slowest());
}

TEST_CASE("delivery: when an epoch gets its plan, those that stand there want their batches") {
  Table table({{client(1), replica(2, 4)}});
  CHECK(table.wanting(batch(2, 4)).empty());
  table.set_planned({Epoch{4}});
  CHECK(table.wanting(batch(2, 4)) == Keys{client(1)});
  table.set_planned({});
  CHECK(table.wanting(batch(2, 4)).empty());
}

TEST_CASE("delivery: those in their last epoch stand apart from all that go on after it") {
  Subscription goes_on = replica(7);
  goes_on.epochs_left = 2;
  Table table({{client(1), replica(7)}, {client(2), goes_on}});
  CHECK(table.places().size() == 1);
  table.edit(client(2))->epochs_left = 1;
  CHECK(table.places().size() == 2);
}
