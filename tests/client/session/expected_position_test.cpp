#include "client/library/session/expected_position.h"

#include <doctest/doctest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/client/session/answers.h"

using namespace batchwright;
using namespace batchwright::test;
using Verdict = ExpectedPosition::Verdict;

namespace {

Result<void> start(ExpectedPosition& expected, const ControlMessage& answer) {
  return expected.start(*answer.as<wire::Subscribed>());
}

Ticket ticket(std::uint64_t epoch, std::uint64_t step, std::uint64_t index) {
  Ticket ticket;
  ticket.epoch = epoch;
  ticket.step = step;
  ticket.index = index;
  return ticket;
}

/// Whether the program gets the batch; it takes it then.
bool handed_out(ExpectedPosition& expected, const Ticket& ticket) {
  const auto verdict = expected.check(ticket);
  REQUIRE_MESSAGE(verdict, (verdict ? "" : verdict.error().message));
  if (*verdict == Verdict::hand_out) expected.advance(ticket);
  return *verdict == Verdict::hand_out;
}

/// The request that goes to another daemon once this one is lost.
wire::SubscribeT resumed(ExpectedPosition& expected) { return expected.resume(); }

/// The start of epoch 0, with so many rehearsals asked for.
struct Rehearsing {
  explicit Rehearsing(std::uint32_t wanted) : expected(request(wanted)) {
    REQUIRE(start(expected, subscribed(0, 0)));
  }
  static wire::SubscribeT request(std::uint32_t wanted) {
    wire::SubscribeT request = request_for();
    request.worst_first = wanted;
    return request;
  }
  static Ticket rehearsal(std::uint64_t index) {
    Ticket of = ticket(0, index, index);
    of.rehearsal = true;
    return of;
  }
  void lose() {
    static_cast<void>(resumed(expected));
    REQUIRE(start(expected, subscribed(0, 0)));
  }

  ExpectedPosition expected;
};

}  // namespace

TEST_CASE("client: a rank's batches are those of its part of each step, in their order") {
  wire::SubscribeT request = request_for(wire::Mode::sharded);
  request.rank = 1;
  request.ranks = 2;
  ExpectedPosition expected(request);
  REQUIRE(start(expected, subscribed(0, 0, 4, 2)));
  CHECK_FALSE(expected.check(ticket(0, 0, 0)));
  CHECK(handed_out(expected, ticket(0, 0, 2)));
  CHECK(expected.within_step());
  CHECK(expected.position().step == 0);
  CHECK(handed_out(expected, ticket(0, 0, 3)));
  CHECK_FALSE(expected.within_step());
  CHECK(expected.position().step == 1);
  CHECK(handed_out(expected, ticket(0, 1, 6)));
}

TEST_CASE("client: an incomplete step is asked for again, and what is known of it passed over") {
  ExpectedPosition expected(request_for());
  REQUIRE(start(expected, subscribed(0, 0, 2, 2)));
  for (const std::uint64_t index : {0U, 1U, 2U}) {
    CHECK(handed_out(expected, ticket(0, index / 2, index)));
  }
  const wire::SubscribeT request = resumed(expected);
  CHECK(request.step == 1);
  CHECK(request.expects_fingerprint);
  CHECK(from_wire(*request.fingerprint) == Fingerprint{1, 2, 3});
  REQUIRE(start(expected, subscribed(0, 1, 2, 2)));
  CHECK_FALSE(handed_out(expected, ticket(0, 1, 2)));
  CHECK(handed_out(expected, ticket(0, 1, 3)));
}

TEST_CASE("client: an epoch's end comes again while the next epoch's plan is not known") {
  ExpectedPosition expected(request_for());
  REQUIRE(start(expected, subscribed(0, 2)));
  CHECK(handed_out(expected, ticket(0, 2, 2)));
  CHECK_FALSE(expected.advance(EpochEnded{0, 3, false}));
  CHECK(expected.position().epoch == 1);
  const wire::SubscribeT request = resumed(expected);
  CHECK(request.epoch == 0);
  CHECK(request.step == 3);
  REQUIRE(start(expected, subscribed(0, 3)));
  CHECK_FALSE(expected.check(ticket(1, 0, 0)));
  const auto verdict = expected.check(EpochEnded{0, 3, false});
  REQUIRE(verdict);
  CHECK(*verdict == Verdict::pass);
  REQUIRE(expected.begin({1, 5, {7, 2, 3}}));
  CHECK(expected.steps() == 5);
  CHECK(expected.position().plan.data == 7);
  CHECK(handed_out(expected, ticket(1, 0, 0)));
}

TEST_CASE("client: an epoch's data may be others only as long as nothing of it was handed out") {
  const Fingerprint grown{7, 2, 3};
  ExpectedPosition expected(request_for());
  REQUIRE(start(expected, subscribed(0, 0)));
  static_cast<void>(resumed(expected));
  REQUIRE(start(expected, subscribed(0, 0, 1, 1, grown)));
  CHECK(expected.first().plan == grown);
  CHECK(handed_out(expected, ticket(0, 0, 0)));
  static_cast<void>(resumed(expected));
  const auto changed = start(expected, subscribed(0, 1));
  REQUIRE_FALSE(changed);
  CHECK(changed.error().code == ErrorCode::fingerprint_mismatch);
}

TEST_CASE("client: a queue's batches come in any order, and its epochs end elsewhere as well") {
  ExpectedPosition expected(request_for(wire::Mode::queue));
  REQUIRE(start(expected, subscribed(4, 0)));
  CHECK(handed_out(expected, ticket(4, 2, 2)));
  CHECK(handed_out(expected, ticket(4, 0, 0)));
  CHECK_FALSE(expected.is_behind());
  REQUIRE(start(expected, subscribed(5, 0)));
  CHECK(expected.is_behind());
  CHECK_FALSE(expected.advance(EpochEnded{4, 0, false}));
  CHECK_FALSE(expected.is_behind());
}

TEST_CASE("client: without worst_first no rehearsal is due") {
  Rehearsing none(0);
  CHECK_FALSE(none.expected.check(Rehearsing::rehearsal(7)));
}

TEST_CASE("client: as many rehearsals are the program's as it asked for, each once") {
  Rehearsing two(2);
  for (const std::uint64_t index : {9U, 4U}) {
    CHECK(handed_out(two.expected, Rehearsing::rehearsal(index)));
    CHECK_FALSE(two.expected.check(Rehearsing::rehearsal(9)));
  }
  CHECK_FALSE(two.expected.check(Rehearsing::rehearsal(5)));
  CHECK(two.expected.resume().worst_first == 2);
}

TEST_CASE("client: rehearsals are over with the first other batch") {
  Rehearsing two(2);
  CHECK(handed_out(two.expected, Rehearsing::rehearsal(9)));
  CHECK(handed_out(two.expected, ticket(0, 0, 0)));
  CHECK_FALSE(two.expected.check(Rehearsing::rehearsal(4)));
  CHECK(two.expected.resume().worst_first == 0);
}

TEST_CASE(
    "client: another daemon repeats the rehearsals that were handed out, then sends the rest") {
  Rehearsing three(3);
  CHECK(handed_out(three.expected, Rehearsing::rehearsal(9)));
  CHECK(handed_out(three.expected, Rehearsing::rehearsal(4)));
  three.lose();
  CHECK_FALSE(handed_out(three.expected, Rehearsing::rehearsal(9)));
  CHECK_FALSE(handed_out(three.expected, Rehearsing::rehearsal(4)));
  CHECK(handed_out(three.expected, Rehearsing::rehearsal(6)));
}

TEST_CASE("client: a rehearsal that comes again in another order is refused") {
  Rehearsing two(2);
  CHECK(handed_out(two.expected, Rehearsing::rehearsal(9)));
  CHECK(handed_out(two.expected, Rehearsing::rehearsal(4)));
  two.lose();
  const auto astray = two.expected.check(Rehearsing::rehearsal(4));
  REQUIRE_FALSE(astray);
  CHECK(astray.error().message.find("rehearsal 4 came") != std::string::npos);
}

TEST_CASE(
    "client: other data than those asked for are as good at an epoch's start, and there only") {
  for (const std::uint64_t step : {0U, 1U, 2U}) {
    CAPTURE(step);
    wire::SubscribeT request = request_for();
    request.step = step;
    request.expects_fingerprint = true;
    request.fingerprint = std::make_unique<wire::Fingerprint>(1, 2, 3);
    ExpectedPosition expected(std::move(request));
    const auto started = start(expected, subscribed(0, step, 1, 1, {7, 2, 3}));
    CHECK(static_cast<bool>(started) == (step == 0));
  }
}

TEST_CASE("client: a queue's epoch may be of other data until a batch of it was handed out") {
  ExpectedPosition expected(request_for(wire::Mode::queue));
  REQUIRE(start(expected, subscribed(4, 0)));
  REQUIRE(start(expected, subscribed(4, 0, 1, 1, {7, 2, 3})));
  CHECK(handed_out(expected, ticket(4, 0, 0)));
  const auto changed = start(expected, subscribed(4, 0));
  REQUIRE_FALSE(changed);
  CHECK(changed.error().code == ErrorCode::fingerprint_mismatch);
}
