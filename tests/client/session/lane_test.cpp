#include "client/library/session/lane.h"

#include <doctest/doctest.h>

#include <chrono>
#include <utility>

#include "client/library/deadline.h"
#include "tests/client/memory/sealed_arena.h"
#include "tests/client/one_client.h"
#include "tests/client/session/answers.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

/// A lane that a daemon serves from step 1 of epoch 0 on.
struct Served {
  explicit Served(std::uint32_t worst_first = 0) : lane(request(worst_first)) { grant(); }

  static wire::SubscribeT request(std::uint32_t worst_first) {
    wire::SubscribeT request = request_for();
    request.worst_first = worst_first;
    return request;
  }
  void grant() { REQUIRE(lane.granted(*subscribed(0, 1).as<wire::Subscribed>())); }
  void batch(std::uint64_t index, bool rehearsal = false) {
    Ticket ticket;
    ticket.lease = LeaseNumber{10 + index};
    ticket.step = ticket.index = index;
    ticket.rehearsal = rehearsal;
    lane.push(ticket);
  }
  template <class Kind>
  Kind next() {
    auto found = lane.look();
    REQUIRE_MESSAGE(found, (found ? "" : found.error().message));
    REQUIRE(std::holds_alternative<Kind>(*found));
    return std::get<Kind>(*std::move(found));
  }

  Lane lane;
};

Ticket joinable(std::uint64_t index, bool may_join, std::uint64_t step = 0) {
  Ticket ticket;
  ticket.lease = LeaseNumber{10 + index};
  ticket.step = step;
  ticket.index = index;
  ticket.may_join = may_join;
  return ticket;
}

/// Takes the next batch; how many releases may wait then.
std::size_t take(Lane& lane, std::chrono::milliseconds when) {
  auto found = lane.look();
  REQUIRE(found);
  REQUIRE(std::holds_alternative<NextBatch>(*found));
  static_cast<void>(std::get<NextBatch>(*std::move(found)).take());
  return lane.releases_may_wait(Deadline::Clock::time_point() + when);
}

}  // namespace

TEST_CASE("client: a batch stays next in line until it is taken") {
  Served served;
  served.batch(1);
  served.batch(2);
  CHECK(served.next<NextBatch>().ticket().index == 1);
  CHECK(served.next<NextBatch>().take().ticket.index == 1);
  CHECK(served.next<NextBatch>().ticket().index == 2);
}

TEST_CASE("client: a taken batch has the position after it, a rehearsal that of the start") {
  Served served(1);
  served.batch(2, true);
  served.batch(1);
  CHECK(served.next<NextBatch>().take().position.step == 1);
  CHECK(served.next<NextBatch>().take().position.step == 2);
}

TEST_CASE("client: releases may wait while a batch is at hand, slots are left, and all goes fast") {
  Lane lane(request_for());
  REQUIRE(lane.granted(*subscribed(0, 0, 8, 8).as<wire::Subscribed>()));
  for (std::uint64_t index = 0; index < 7; ++index) lane.push(joinable(index, index != 3));
  CHECK(take(lane, 0ms) == 0);   // how fast it goes is not known yet
  CHECK(take(lane, 9ms) == 1);   // half of the window of 4, less the release that sends them
  CHECK(take(lane, 10ms) == 0);  // batch 3 is next, and was sent when slots were scarce
  CHECK(take(lane, 11ms) == 1);
  CHECK(take(lane, 21ms) == 0);  // slow
  CHECK(take(lane, 22ms) == 1);
  CHECK(take(lane, 23ms) == 0);  // nothing is at hand
}

TEST_CASE("client: no release waits before the end of an epoch, or in queue mode") {
  Lane lane(request_for());
  REQUIRE(lane.granted(*subscribed(0, 2).as<wire::Subscribed>()));
  lane.push(joinable(2, true, 2));
  lane.push(EpochEnded{0, 3, false});
  static_cast<void>(lane.releases_may_wait(Deadline::Clock::time_point()));
  CHECK(take(lane, 0ms) == 0);

  Lane queue(request_for(wire::Mode::queue));
  REQUIRE(queue.granted(*subscribed(0, 0, 8, 8).as<wire::Subscribed>()));
  for (const std::uint64_t index : {0U, 1U, 2U}) queue.push(joinable(index, true));
  CHECK(take(queue, 0ms) == 0);
  CHECK(take(queue, 0ms) == 0);
}

TEST_CASE("client: the end of the last epoch is the last event of a lane") {
  Served served;
  served.batch(1);
  static_cast<void>(served.next<NextBatch>().take());
  served.lane.push(EpochEnded{0, 2, true});
  CHECK(served.next<NextEnd>().take().steps == 2);
  CHECK(served.lane.is_over());
  static_cast<void>(served.next<NothingFollows>());
}

TEST_CASE("client: what a lost daemon sent is void, and another is asked for it") {
  Served served;
  served.batch(1);
  static_cast<void>(served.next<NextBatch>().take());
  served.batch(2);
  served.lane.lost();
  CHECK_FALSE(served.lane.has_news());
  CHECK_FALSE(served.lane.is_served());
  CHECK(served.lane.resume().step == 2);
}

TEST_CASE("client: a lane that failed has its reason to say, after the ends that had come") {
  Served served;
  served.batch(1);
  static_cast<void>(served.next<NextBatch>().take());
  served.lane.push(EpochEnded{0, 2, false});
  Ticket ticket;
  ticket.epoch = 1;
  served.lane.push(ticket);
  served.lane.fail({ErrorCode::disconnected, "gone"});
  CHECK(served.next<NextEnd>().take().epoch == 0);
  const auto found = served.lane.look();
  REQUIRE_FALSE(found);
  CHECK(found.error().message == "gone");
}

TEST_CASE(
    "client: the batch that comes next is known once it is announced, and is no epoch's end") {
  Served served;
  CHECK(served.lane.coming() == nullptr);
  served.batch(1);
  REQUIRE(served.lane.coming() != nullptr);
  CHECK(served.lane.coming()->index == 1);
  served.next<NextBatch>().take();
  served.lane.push(EpochEnded{0, 2, true});
  CHECK(served.lane.coming() == nullptr);
}

TEST_CASE("client: a batch that was copied ahead is void with its session") {
  Lane lane(request_for(), true);
  SealedArena arena;
  const Place first{0, kPage};
  const PrivateMemory::Wanted next{{kPage, kPage}, LeaseNumber{1}};
  std::memset(writable(lane.memory()->lend(arena.mapping(), {first, {}})->payload.bytes), 9, kPage);
  lane.memory()->prepare(arena.mapping(), next);
  REQUIRE(eventually([&arena] { return arena.mapping().use_count() == 1; }));  // it is copied
  lane.lost();
  arena.fill(0, SealedArena::size(), 5);
  const auto again = lane.memory()->lend(arena.mapping(), next);
  REQUIRE(again);
  CHECK(again->payload.bytes.front() == std::byte{5});
}
