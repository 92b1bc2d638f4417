#include "client/library/session/lane.h"

#include <doctest/doctest.h>

#include <utility>

#include "tests/client/memory/sealed_arena.h"
#include "tests/client/one_client.h"
#include "tests/client/session/answers.h"

using namespace batchwright;
using namespace batchwright::test;

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
