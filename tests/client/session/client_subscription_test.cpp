#include "client/library/session/client_subscription.h"

#include <doctest/doctest.h>

#include <chrono>
#include <utility>

#include "tests/client/memory/sealed_arena.h"
#include "tests/client/one_client.h"
#include "tests/client/session/answers.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;
using Coming = ClientSubscription::Coming;

namespace {

constexpr Time kStart{};

/// A subscription that a daemon serves from step 1 of epoch 0 on.
struct Served {
  explicit Served(std::uint32_t worst_first = 0) : Served(request(worst_first), 1) {}
  Served(wire::SubscribeT request, std::uint64_t step, std::uint32_t world = 1)
      : all(std::move(request), false) {
    REQUIRE(grant(0, step, world));
  }

  static wire::SubscribeT request(std::uint32_t worst_first) {
    wire::SubscribeT request = request_for();
    request.worst_first = worst_first;
    return request;
  }
  Result<void> grant(std::uint64_t epoch, std::uint64_t step, std::uint32_t world = 1) {
    return all.on(*subscribed(epoch, step, world, world).as<wire::Subscribed>(), kStart);
  }
  Result<void> deliver(wire::DeliveryT delivery, std::size_t in_message = 0) {
    delivery.lease = 10 + delivery.index;
    const ControlMessage message = received(std::move(delivery));
    const auto room = std::make_shared<std::vector<std::byte>>(in_message);
    const Payload batch = in_message != 0 ? Payload{room, *room} : Payload{};
    return all.on(*message.as<wire::Delivery>(), batch, in_message != 0, kStart);
  }
  void batch(std::uint64_t index, bool rehearsal = false) {
    wire::DeliveryT delivery;
    delivery.step = delivery.index = index;
    delivery.rehearsal = rehearsal;
    REQUIRE(deliver(std::move(delivery)));
  }
  void end(std::uint64_t steps, bool last) {
    wire::EpochEndT ended;
    ended.steps = steps;
    ended.last = last;
    REQUIRE(all.on(*received(std::move(ended)).as<wire::EpochEnd>(), kStart));
  }
  void joinable(std::uint64_t index, bool may_join, std::uint64_t step = 0) {
    wire::DeliveryT delivery;
    delivery.step = step;
    delivery.index = index;
    delivery.may_join = may_join;
    REQUIRE(deliver(std::move(delivery)));
  }

  void next_is(Coming wanted) {
    const auto found = all.look();
    REQUIRE_MESSAGE(found, (found ? "" : found.error().message));
    REQUIRE(found->has_value());
    REQUIRE(**found == wanted);
  }
  /// Takes the next batch; how many releases may wait then.
  std::size_t take(std::chrono::milliseconds when) {
    next_is(Coming::batch);
    static_cast<void>(all.take_batch());
    return all.releases_may_wait(kStart + when);
  }

  ClientSubscription all;
};

}  // namespace

TEST_CASE("client: a batch stays next in line until it is taken") {
  Served served;
  served.batch(1);
  served.batch(2);
  for (int look = 0; look < 2; ++look) {
    served.next_is(Coming::batch);
    CHECK(served.all.coming()->index == 1);
  }
  static_cast<void>(served.all.take_batch());
  served.next_is(Coming::batch);
  CHECK(served.all.coming()->index == 2);
}

TEST_CASE("client: a taken batch has the position after it, a rehearsal that of the start") {
  Served served(1);
  served.batch(2, true);
  served.batch(1);
  served.next_is(Coming::rehearsal);
  CHECK(served.all.take_batch().step == 1);
  served.next_is(Coming::batch);
  CHECK(served.all.take_batch().step == 2);
}

TEST_CASE("client: releases may wait while a batch is at hand, slots are left, and all goes fast") {
  Served served(request_for(), 0, 8);
  for (const std::uint64_t index : {0U, 1U, 2U, 3U}) served.joinable(index, index != 2);
  CHECK(served.take(0ms) == 0);   // how fast it goes is not known yet
  CHECK(served.take(9ms) == 0);   // batch 2 is next, and was sent when slots were scarce
  CHECK(served.take(18ms) == 1);  // half of the window of 4, less the release that sends them
  served.joinable(4, true);
  served.take(19ms);
  CHECK(served.take(20ms) == 0);  // nothing is at hand
  served.joinable(5, true);
  served.joinable(6, true);
  CHECK(served.take(30ms) == 0);  // slow, with less than half of the window unread
}

TEST_CASE("client: with half of the window unread releases may wait for a slower program, too") {
  Served served(request_for(), 0, 8);
  for (const std::uint64_t index : {0U, 1U, 2U, 3U, 4U}) served.joinable(index, true);
  CHECK(served.take(0ms) == 0);
  CHECK(served.take(999ms) == 1);
  CHECK(served.take(1998ms) == 1);
  CHECK(served.take(2997ms) == 0);  // one batch is unread
  for (const std::uint64_t index : {5U, 6U}) served.joinable(index, true);
  CHECK(served.take(3997ms) == 0);  // slower still
  served.joinable(7, false);
  CHECK(served.take(3998ms) == 0);  // the newest says that slots are scarce by now
}

TEST_CASE("client: no release waits before the end of an epoch, or in queue mode") {
  Served served(request_for(), 2);
  served.joinable(2, true, 2);
  served.end(3, false);
  static_cast<void>(served.all.releases_may_wait(kStart));
  CHECK(served.take(0ms) == 0);

  Served queue(request_for(wire::Mode::queue), 0, 8);
  for (const std::uint64_t index : {0U, 1U, 2U}) queue.joinable(index, true);
  CHECK(queue.take(0ms) == 0);
  CHECK(queue.take(0ms) == 0);
}

TEST_CASE("client: the end of the last epoch is the last event of a subscription") {
  Served served;
  served.batch(1);
  static_cast<void>(served.take(0ms));
  served.end(2, true);
  served.next_is(Coming::epoch_end);
  CHECK(served.all.take_end().steps == 2);
  CHECK(served.all.is_over());
  served.next_is(Coming::nothing);
}

TEST_CASE("client: what a lost daemon sent is void, and another is asked for it") {
  Served served;
  served.batch(1);
  static_cast<void>(served.take(0ms));
  served.batch(2);
  served.all.lost();
  CHECK_FALSE(served.all.has_news());
  CHECK_FALSE(served.all.is_served());
  CHECK(served.all.wants_more());
  CHECK(served.all.request().step == 2);
}

TEST_CASE("client: batches that were handed out before are given back and passed over") {
  Served served(request_for(), 0, 2);
  served.joinable(0, false);
  static_cast<void>(served.take(0ms));
  served.all.lost();
  CHECK(served.all.request().step == 0);
  REQUIRE(served.grant(0, 0, 2));
  served.joinable(0, false);
  const auto nothing = served.all.look();
  REQUIRE(nothing);
  CHECK_FALSE(nothing->has_value());
  CHECK(served.all.leases().take_outbox({}).releases == std::vector<LeaseNumber>{{10}});
  served.joinable(1, false);
  CHECK(served.take(0ms) == 0);
}

TEST_CASE(
    "client: a subscription that failed has its reason to say, after the ends that had come") {
  Served served;
  served.batch(1);
  static_cast<void>(served.take(0ms));
  served.end(2, false);
  served.batch(0);
  served.all.fail({ErrorCode::disconnected, "gone"});
  served.next_is(Coming::epoch_end);
  CHECK(served.all.take_end().epoch == 0);
  const auto found = served.all.look();
  REQUIRE_FALSE(found);
  CHECK(found.error().message == "gone");
}

TEST_CASE(
    "client: the batch that comes next is known once it is announced, and is no epoch's end") {
  Served served;
  CHECK(served.all.coming() == nullptr);
  served.batch(1);
  REQUIRE(served.all.coming() != nullptr);
  CHECK(served.all.coming()->index == 1);
  static_cast<void>(served.take(0ms));
  served.end(2, true);
  CHECK(served.all.coming() == nullptr);
}

TEST_CASE("client: a batch that came without its bytes, or before its Subscribed, is malformed") {
  Served served;
  wire::DeliveryT delivery;
  delivery.size = 100;
  CHECK(served.deliver(delivery));
  CHECK(served.deliver(delivery, 100));
  CHECK_FALSE(served.deliver(delivery, 99));
  served.all.lost();
  const auto early = served.deliver(delivery);
  REQUIRE_FALSE(early);
  CHECK(early.error().message == "a batch came before its Subscribed");
}

TEST_CASE("client: another daemon is asked for what goes on, and for the leases that a queue has") {
  Served served(request_for(wire::Mode::queue), 0);
  REQUIRE(served.all.leases().take(LeaseNumber{10}));
  served.all.lost();
  CHECK(served.all.wants_more());
  CHECK(served.all.request().held == std::vector<std::uint64_t>{10});
  served.all.refuse({ErrorCode::does_not_fit, "no slot"});
  CHECK_FALSE(served.all.wants_more());
}

TEST_CASE("client: a subscription that ends names its feed once in the reason") {
  Served served;
  CHECK(served.all.end({ErrorCode::corrupt_record, "bad"}).message == "feed \"train\": bad");
  CHECK(served.all.failure()->message == "feed \"train\": bad");
  CHECK(served.all.leases().is_closed());
  const Error again = served.all.end({ErrorCode::corrupt_record, "feed \"train\": bad"});
  CHECK(again.message == "feed \"train\": bad");
}

TEST_CASE("client: a batch that was copied ahead is void with its session") {
  ClientSubscription subscription(request_for(), true);
  PrivateMemory& memory = *subscription.memory();
  SealedArena arena;
  const Place first{0, kPage};
  const PrivateMemory::Wanted next{{kPage, kPage}, LeaseNumber{1}};
  std::memset(writable(memory.lend(arena.mapping(), {first, {}})->payload.bytes), 9, kPage);
  memory.prepare(arena.mapping(), next);
  REQUIRE(eventually([&arena] { return arena.mapping().use_count() == 1; }));  // it is copied
  subscription.lost();
  arena.fill(0, SealedArena::size(), 5);
  const auto again = memory.lend(arena.mapping(), next);
  REQUIRE(again);
  CHECK(again->payload.bytes.front() == std::byte{5});
}
