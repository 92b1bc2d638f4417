#include "client/library/session/lanes.h"

#include <doctest/doctest.h>

#include "tests/client/session/answers.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// The subscriptions of a session, of which the first is served.
struct Subscribed {
  explicit Subscribed(wire::Mode mode = wire::Mode::replica)
      : lane(lanes.open(request_for(mode), false)) {
    REQUIRE(lanes.take_in(subscribed(0, 0)));
  }

  Result<void> deliver(std::uint64_t index, std::uint64_t bytes, std::size_t in_message = 0) {
    wire::DeliveryT delivery;
    delivery.subscription = lane->number().value;
    delivery.lease = 10 + index;
    delivery.step = delivery.index = index;
    delivery.size = bytes;
    const ControlMessage message = received(std::move(delivery));
    const auto room = std::make_shared<std::vector<std::byte>>(in_message);
    const Payload batch = in_message != 0 ? Payload{room, *room} : Payload{};
    return lanes.deliver(*message.as<wire::Delivery>(), batch, in_message != 0);
  }

  LeaseBook book;
  Lanes lanes{book};
  std::shared_ptr<Lane> lane;
};

}  // namespace

TEST_CASE("client: subscriptions are numbered from 1, and closed ones are not found") {
  LeaseBook book;
  Lanes lanes(book);
  const auto first = lanes.open(request_for(), false);
  const auto second = lanes.open(request_for(), false);
  CHECK(first->number().value == 1);
  CHECK(second->number().value == 2);
  book.close({1});
  CHECK(lanes.find({1}) == nullptr);
  CHECK(lanes.find({2}) == second.get());
  CHECK(lanes.find({3}) == nullptr);
}

TEST_CASE("client: news of a subscription that is closed are dropped") {
  Subscribed one;
  one.book.close({1});
  CHECK(one.deliver(0, 100));
  CHECK(one.lanes.take_in(subscribed(0, 0)));
  CHECK_FALSE(one.lane->has_news());
}

TEST_CASE("client: a batch that came without its bytes, or before its Subscribed, is malformed") {
  Subscribed one;
  CHECK(one.deliver(0, 100));
  CHECK(one.deliver(1, 100, 100));
  CHECK_FALSE(one.deliver(2, 100, 99));
  one.lanes.lost();
  const auto early = one.deliver(3, 100);
  REQUIRE_FALSE(early);
  CHECK(early.error().message == "a batch came before its Subscribed");
}

TEST_CASE("client: a message that is the client's own to send is malformed") {
  Subscribed one;
  const auto taken = one.lanes.take_in(received(wire::HelloT{}));
  REQUIRE_FALSE(taken);
  CHECK(taken.error().code == ErrorCode::malformed_message);
}

TEST_CASE("client: another daemon is asked for what goes on, and for the leases that a queue has") {
  Subscribed one(wire::Mode::queue);
  const auto refused = one.lanes.open(request_for(), false);
  refused->refuse({ErrorCode::does_not_fit, "no slot"});
  REQUIRE(one.book.take({1}, LeaseNumber{10}));
  one.lanes.lost();
  const auto requests = one.lanes.requests();
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].subscription == 1);
  CHECK(requests[0].held == std::vector<std::uint64_t>{10});
}

TEST_CASE("client: a subscription that ends names its feed once in the reason") {
  Subscribed one;
  CHECK(one.lanes.end(*one.lane, {ErrorCode::corrupt_record, "bad"}).message ==
        "feed \"train\": bad");
  CHECK(one.lane->failure()->message == "feed \"train\": bad");
  CHECK(one.book.closed({1}));
  const auto again = one.lanes.end(*one.lane, {ErrorCode::corrupt_record, "feed \"train\": bad"});
  CHECK(again.message == "feed \"train\": bad");
}
