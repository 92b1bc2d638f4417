#include "daemon/delivery/feed/roster/roster.h"

#include <doctest/doctest.h>

#include "tests/delivery/feed/names.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

Standing holds(std::size_t batches, std::uint64_t wants) {
  Standing standing;
  standing.holds = batches;
  standing.served = batches != 0;
  standing.spoke = batches != 0;
  standing.wants = batch(wants);
  return standing;
}

Standing rank_of(std::uint32_t ranks, std::uint32_t here, std::size_t batches,
                 std::uint64_t wants) {
  Standing standing = holds(batches, wants);
  standing.job = {ranks, here};
  return standing;
}

}  // namespace

TEST_CASE("delivery: who looks on is given one batch, until it releases it or says that it waits") {
  Roster roster(16);
  Standing looks_on = holds(1, 1);
  looks_on.spoke = false;
  roster.note(client(1), looks_on);
  CHECK_FALSE(roster.may_take(client(1), 1, false));
  looks_on.spoke = true;
  roster.note(client(1), looks_on);
  CHECK(roster.may_take(client(1), 1, false));
}

TEST_CASE("delivery: the last slot is for who waits with a batch in hand") {
  Roster roster(4);
  Standing waits = holds(1, 1);
  roster.note(client(1), waits);
  roster.note(client(2), holds(2, 5));
  roster.note(client(3), holds(0, 9));
  CHECK_FALSE(roster.may_take(client(1), 3, false));
  CHECK_FALSE(roster.may_take(client(3), 3, false));
  waits.asks = true;
  roster.note(client(1), waits);
  CHECK(roster.may_take(client(1), 3, false));
  CHECK_FALSE(roster.may_take(client(1), 4, false));
}

TEST_CASE("delivery: a second batch in reserve comes after each other's first") {
  Roster roster(8);
  roster.note(client(1), holds(2, 2));
  CHECK(roster.may_take(client(1), 5, false));
  CHECK_FALSE(roster.may_take(client(1), 6, false));
  roster.note(client(2), holds(1, 3));
  CHECK_FALSE(roster.may_take(client(1), 5, false));
  CHECK(roster.may_take(client(2), 5, false));
}

TEST_CASE("delivery: ranks have nothing in reserve before all of them have a batch") {
  Roster roster(16);
  roster.note(client(1), rank_of(2, 2, 1, 2));
  CHECK(roster.absent({2, 2}) == 1);
  CHECK_FALSE(roster.may_take(client(1), 1, false));
  roster.note(client(2), rank_of(2, 2, 0, 1));
  CHECK(roster.absent({2, 2}) == 0);
  CHECK_FALSE(roster.may_take(client(1), 1, false));
  roster.note(client(2), rank_of(2, 2, 1, 3));
  CHECK(roster.may_take(client(1), 2, false));
}

TEST_CASE("delivery: ranks elsewhere are not waited for once one here has released a batch") {
  Roster roster(16);
  roster.note(client(1), rank_of(64, 0, 1, 1));
  CHECK(roster.expects_unknown());
  CHECK_FALSE(roster.may_take(client(1), 1, false));
  Standing released = rank_of(64, 0, 1, 2);
  released.released = true;
  roster.note(client(1), released);
  CHECK_FALSE(roster.expects_unknown());
  CHECK(roster.may_take(client(1), 1, false));
}

TEST_CASE("delivery: ranks of which nothing is known are expected for a while only") {
  Roster roster(16);
  roster.note(client(1), rank_of(64, 0, 1, 1));
  roster.note(client(2), rank_of(8, 2, 1, 1));
  roster.stop_expecting();
  CHECK(roster.absent({64, 0}) == 0);
  CHECK(roster.absent({8, 2}) == 1);
  CHECK(roster.may_take(client(1), 2, false));
  CHECK_FALSE(roster.may_take(client(2), 2, false));
}

TEST_CASE("delivery: a job needs a slot more than ranks here, and those of other jobs beside it") {
  Roster roster(16);
  CHECK(roster.slots_needed_for({64, 8}, 1) == 9);
  CHECK(roster.slots_needed_for({64, 0}, 3) == 4);
  roster.note(client(1), rank_of(4, 4, 1, 1));
  CHECK(roster.slots_needed_for({8, 8}, 1) == 13);
}

TEST_CASE("delivery: a client beside a job needs a slot of its own, and one of no job does not") {
  Roster roster(16);
  roster.note(client(1), Standing{});
  CHECK(roster.loners() == 1);
  CHECK(roster.slots_needed_beside_jobs() == 0);
  roster.note(client(2), rank_of(4, 4, 1, 1));
  CHECK(roster.slots_needed_beside_jobs() == 4 + 1 + 2);
  CHECK(roster.slots_needed_for({4, 4}, 2) == 4 + 1 + 1);
  Standing remote;
  remote.remote = true;
  roster.note(client(3), remote);
  Standing gone;
  gone.over = true;
  roster.note(client(4), gone);
  CHECK(roster.loners() == 1);
  // Remote ranks hold no slots, whatever their own host has of them.
  Standing elsewhere = rank_of(8, 8, 1, 1);
  elsewhere.remote = true;
  roster.note(client(5), elsewhere);
  CHECK(roster.slots_needed_for({4, 4}, 2) == 4 + 1 + 1);
}

TEST_CASE("delivery: who is gone counts no more") {
  Roster roster(4);
  roster.note(client(1), holds(2, 2));
  roster.note(client(2), rank_of(3, 3, 2, 2));
  CHECK(roster.wanted().at(batch(2)).all.size() == 2);
  roster.forget(client(1));
  roster.forget(client(2));
  CHECK(roster.wanted().empty());
  CHECK(roster.slots_needed() == 1);
  CHECK(roster.absent({3, 3}) == 0);
}
