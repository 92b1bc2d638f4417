#include "client/library/session/progress.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/client/session/answers.h"

using namespace batchwright;
using namespace batchwright::test;
using Verdict = Progress::Verdict;

namespace {

Result<void> start(Progress& progress, const ControlMessage& answer) {
  return progress.start(*answer.as<wire::Subscribed>());
}

Ticket ticket(std::uint64_t epoch, std::uint64_t step, std::uint64_t index) {
  Ticket ticket;
  ticket.epoch = epoch;
  ticket.step = step;
  ticket.index = index;
  return ticket;
}

/// Whether the program gets the batch; it takes it then.
bool handed_out(Progress& progress, const Ticket& ticket) {
  const auto verdict = progress.check(ticket);
  REQUIRE_MESSAGE(verdict, (verdict ? "" : verdict.error().message));
  if (*verdict == Verdict::hand_out) progress.advance(ticket);
  return *verdict == Verdict::hand_out;
}

/// The request that goes to another daemon once this one is lost.
wire::SubscribeT resumed(Progress& progress) {
  wire::SubscribeT request = request_for();
  progress.resume(request);
  return request;
}

}  // namespace

TEST_CASE("client: a rank's batches are those of its part of each step, in their order") {
  wire::SubscribeT request = request_for(wire::Mode::sharded);
  request.rank = 1;
  request.ranks = 2;
  Progress progress(request);
  REQUIRE(start(progress, subscribed(0, 0, 4, 2)));
  CHECK_FALSE(progress.check(ticket(0, 0, 0)));
  CHECK(handed_out(progress, ticket(0, 0, 2)));
  CHECK(progress.within_step());
  CHECK(progress.position().step == 0);
  CHECK(handed_out(progress, ticket(0, 0, 3)));
  CHECK_FALSE(progress.within_step());
  CHECK(progress.position().step == 1);
  CHECK(handed_out(progress, ticket(0, 1, 6)));
}

TEST_CASE("client: an incomplete step is asked for anew, and what is known of it passed over") {
  Progress progress(request_for());
  REQUIRE(start(progress, subscribed(0, 0, 2, 2)));
  for (const std::uint64_t index : {0U, 1U, 2U}) {
    CHECK(handed_out(progress, ticket(0, index / 2, index)));
  }
  const wire::SubscribeT request = resumed(progress);
  CHECK(request.step == 1);
  CHECK(request.expects_fingerprint);
  CHECK(from_wire(*request.fingerprint) == Fingerprint{1, 2, 3});
  REQUIRE(start(progress, subscribed(0, 1, 2, 2)));
  CHECK_FALSE(handed_out(progress, ticket(0, 1, 2)));
  CHECK(handed_out(progress, ticket(0, 1, 3)));
}

TEST_CASE("client: an epoch's end comes again while the next epoch's plan is not known") {
  Progress progress(request_for());
  REQUIRE(start(progress, subscribed(0, 2)));
  CHECK(handed_out(progress, ticket(0, 2, 2)));
  CHECK_FALSE(progress.advance(EpochEnded{0, 3, false}));
  CHECK(progress.position().epoch == 1);
  const wire::SubscribeT request = resumed(progress);
  CHECK(request.epoch == 0);
  CHECK(request.step == 3);
  REQUIRE(start(progress, subscribed(0, 3)));
  CHECK_FALSE(progress.check(ticket(1, 0, 0)));
  const auto verdict = progress.check(EpochEnded{0, 3, false});
  REQUIRE(verdict);
  CHECK(*verdict == Verdict::pass);
  REQUIRE(progress.begin({1, 5, {7, 2, 3}}));
  CHECK(progress.steps() == 5);
  CHECK(progress.position().plan.data == 7);
  CHECK(handed_out(progress, ticket(1, 0, 0)));
}

TEST_CASE("client: an epoch's data may be others only as long as nothing of it was handed out") {
  const Fingerprint grown{7, 2, 3};
  Progress progress(request_for());
  REQUIRE(start(progress, subscribed(0, 0)));
  static_cast<void>(resumed(progress));
  REQUIRE(start(progress, subscribed(0, 0, 1, 1, grown)));
  CHECK(progress.first().plan == grown);
  CHECK(handed_out(progress, ticket(0, 0, 0)));
  static_cast<void>(resumed(progress));
  const auto changed = start(progress, subscribed(0, 1));
  REQUIRE_FALSE(changed);
  CHECK(changed.error().code == ErrorCode::fingerprint_mismatch);
}

TEST_CASE("client: a queue's batches come in any order, and its epochs end elsewhere as well") {
  Progress progress(request_for(wire::Mode::queue));
  REQUIRE(start(progress, subscribed(4, 0)));
  CHECK(handed_out(progress, ticket(4, 2, 2)));
  CHECK(handed_out(progress, ticket(4, 0, 0)));
  CHECK_FALSE(progress.is_behind());
  REQUIRE(start(progress, subscribed(5, 0)));
  CHECK(progress.is_behind());
  CHECK_FALSE(progress.advance(EpochEnded{4, 0, false}));
  CHECK_FALSE(progress.is_behind());
}
