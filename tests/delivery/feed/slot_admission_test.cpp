#include <doctest/doctest.h>

#include "tests/delivery/feed/admission_states.h"
#include "tests/delivery/feed/names.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

AdmissionState holds(std::size_t batches, std::uint64_t wants) {
  AdmissionState standing;
  standing.holds = batches;
  standing.served = batches != 0;
  standing.spoke = batches != 0;
  standing.wants = batch(wants);
  return standing;
}

AdmissionState rank_of(std::uint32_t ranks, std::uint32_t here, std::size_t batches,
                       std::uint64_t wants) {
  AdmissionState standing = holds(batches, wants);
  standing.job = {ranks, here};
  return standing;
}

}  // namespace

TEST_CASE("delivery: an observer gets one batch, until it releases it or says that it waits") {
  AdmissionStates admission(16);
  AdmissionState looks_on = holds(1, 1);
  looks_on.spoke = false;
  admission.note(client(1), looks_on);
  CHECK_FALSE(admission.may_take(client(1), 1, false));
  looks_on.spoke = true;
  admission.note(client(1), looks_on);
  CHECK(admission.may_take(client(1), 1, false));
}

TEST_CASE("delivery: the last slot is for a client that waits with a batch in hand") {
  AdmissionStates admission(4);
  AdmissionState waits = holds(1, 1);
  admission.note(client(1), waits);
  admission.note(client(2), holds(2, 5));
  admission.note(client(3), holds(0, 9));
  CHECK_FALSE(admission.may_take(client(1), 3, false));
  CHECK_FALSE(admission.may_take(client(3), 3, false));
  waits.asks = true;
  admission.note(client(1), waits);
  CHECK(admission.may_take(client(1), 3, false));
  CHECK_FALSE(admission.may_take(client(1), 4, false));
}

TEST_CASE("delivery: where nothing is held a newcomer may begin, whichever others have nothing") {
  AdmissionStates admission(2);
  for (const std::uint64_t number : {1U, 2U}) {
    AdmissionState returning = holds(0, number);
    returning.served = true;
    admission.note(client(number), returning);
  }
  admission.note(client(3), holds(0, 9));
  CHECK(admission.may_take(client(3), 0, false));
  CHECK_FALSE(admission.may_take(client(3), 1, false));
}

TEST_CASE("delivery: a second batch in reserve comes after each other's first") {
  AdmissionStates admission(8);
  admission.note(client(1), holds(2, 2));
  CHECK(admission.may_take(client(1), 5, false));
  CHECK_FALSE(admission.may_take(client(1), 6, false));
  admission.note(client(2), holds(1, 3));
  CHECK_FALSE(admission.may_take(client(1), 5, false));
  CHECK(admission.may_take(client(2), 5, false));
}

TEST_CASE("delivery: ranks have nothing in reserve before all of them have a batch") {
  AdmissionStates admission(16);
  admission.note(client(1), rank_of(2, 2, 1, 2));
  CHECK(admission.absent({2, 2}) == 1);
  CHECK_FALSE(admission.may_take(client(1), 1, false));
  admission.note(client(2), rank_of(2, 2, 0, 1));
  CHECK(admission.absent({2, 2}) == 0);
  CHECK_FALSE(admission.may_take(client(1), 1, false));
  admission.note(client(2), rank_of(2, 2, 1, 3));
  CHECK(admission.may_take(client(1), 2, false));
}

TEST_CASE("delivery: ranks elsewhere are not waited for once one here has released a window") {
  AdmissionStates admission(16);
  admission.note(client(1), rank_of(64, 0, 1, 1));
  CHECK(admission.expects_unknown());
  CHECK_FALSE(admission.may_take(client(1), 1, false));
  AdmissionState released = rank_of(64, 0, 1, 2);
  released.shows_job = true;
  admission.note(client(1), released);
  CHECK_FALSE(admission.expects_unknown());
  CHECK(admission.may_take(client(1), 1, false));
}

TEST_CASE("delivery: ranks of which nothing is known are expected for a while only") {
  AdmissionStates admission(16);
  admission.note(client(1), rank_of(64, 0, 1, 1));
  admission.note(client(2), rank_of(8, 2, 1, 1));
  admission.stop_expecting();
  CHECK(admission.absent({64, 0}) == 0);
  CHECK(admission.absent({8, 2}) == 1);
  CHECK(admission.may_take(client(1), 2, false));
  CHECK_FALSE(admission.may_take(client(2), 2, false));
}

TEST_CASE("delivery: a job needs a slot more than ranks here, and those of other jobs beside it") {
  AdmissionStates admission(16);
  CHECK(admission.slots_needed_for({64, 8}, 1) == 9);
  CHECK(admission.slots_needed_for({64, 0}, 3) == 4);
  admission.note(client(1), rank_of(4, 4, 1, 1));
  CHECK(admission.slots_needed_for({8, 8}, 1) == 13);
}

TEST_CASE("delivery: a client beside a job needs a slot of its own, and one of no job does not") {
  AdmissionStates admission(16);
  admission.note(client(1), AdmissionState{});
  CHECK(admission.loners() == 1);
  CHECK(admission.slots_needed_beside_jobs() == 0);
  admission.note(client(2), rank_of(4, 4, 1, 1));
  CHECK(admission.slots_needed_beside_jobs() == 4 + 1 + 2);
  CHECK(admission.slots_needed_for({4, 4}, 2) == 4 + 1 + 1);
  AdmissionState remote;
  remote.remote = true;
  admission.note(client(3), remote);
  AdmissionState gone;
  gone.over = true;
  admission.note(client(4), gone);
  CHECK(admission.loners() == 1);
  // Remote ranks hold no slots, whatever their own host has of them.
  AdmissionState elsewhere = rank_of(8, 8, 1, 1);
  elsewhere.remote = true;
  admission.note(client(5), elsewhere);
  CHECK(admission.slots_needed_for({4, 4}, 2) == 4 + 1 + 1);
}

TEST_CASE("delivery: a client that is gone counts no more") {
  AdmissionStates admission(4);
  admission.note(client(1), holds(2, 2));
  admission.note(client(2), rank_of(3, 3, 2, 2));
  CHECK(admission.wanted().at(batch(2)).all.size() == 2);
  admission.forget(client(1));
  admission.forget(client(2));
  CHECK(admission.wanted().empty());
  CHECK(admission.slots_needed() == 1);
  CHECK(admission.absent({3, 3}) == 0);
}
