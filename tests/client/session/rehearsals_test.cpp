#include "client/library/session/rehearsals.h"

#include <doctest/doctest.h>

using namespace batchwright;

TEST_CASE("client: without worst_first no rehearsal is due") {
  CHECK_FALSE(Rehearsals(0).are_due());
  CHECK(Rehearsals(0).check(7) == Rehearsals::Verdict::surplus);
}

TEST_CASE("client: as many rehearsals are the program's as it asked for, each once") {
  Rehearsals rehearsals(2);
  for (const std::uint64_t index : {9U, 4U}) {
    CHECK(rehearsals.check(index) == Rehearsals::Verdict::fresh);
    rehearsals.take(index);
    CHECK(rehearsals.check(9) == Rehearsals::Verdict::surplus);
  }
  CHECK(rehearsals.check(5) == Rehearsals::Verdict::surplus);
  CHECK(rehearsals.are_due());
  rehearsals.end();
  CHECK_FALSE(rehearsals.are_due());
}

TEST_CASE(
    "client: another daemon repeats the rehearsals that were handed out, then sends the rest") {
  Rehearsals rehearsals(3);
  rehearsals.take(9);
  rehearsals.take(4);
  rehearsals.begin_again();
  CHECK(rehearsals.check(9) == Rehearsals::Verdict::repeated);
  CHECK(rehearsals.check(4) == Rehearsals::Verdict::repeated);
  CHECK(rehearsals.check(6) == Rehearsals::Verdict::fresh);
}

TEST_CASE("client: a rehearsal that comes again in another order is astray") {
  Rehearsals rehearsals(2);
  rehearsals.take(9);
  rehearsals.take(4);
  rehearsals.begin_again();
  CHECK(rehearsals.check(4) == Rehearsals::Verdict::astray);
}
