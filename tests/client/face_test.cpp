#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "client/library/batchwright/client.hpp"
#include "tests/client/fake/fake_daemon.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

TEST_CASE("client: the C++ face takes batches and gives them back by itself") {
  FakeDaemon daemon;
  client::Connection connection(daemon.endpoint());
  REQUIRE(connection.feeds().size() == 1);
  client::Subscription subscription = connection.subscribe({.feed = "train", .epochs = 1});
  daemon.deliver(1, 0, 0, 0);
  daemon.deliver(1, 0, 1, 1);
  daemon.end_epoch(1, 0, true);
  std::size_t batches = 0;
  while (const client::Event event = subscription.next(20s)) {
    if (!event.is_batch()) continue;
    CHECK(event.epoch == 0);
    CHECK(event.batch.lengths()[0] == 3);
    CHECK(event.batch.key(1) == "another");
    CHECK(event.batch.memory());
    CHECK(event.batch.primary().name() == "features");
    CHECK(event.batch["features"].as<float>().back() == FakeDaemon::value(batches, 1, 2, 1));
    CHECK(event.batch.position().step == batches + 1);
    ++batches;
  }
  CHECK(batches == 2);
  CHECK(daemon.hears([](const auto& heard) { return heard.released.size() == 2; }));
}

TEST_CASE("client: the C++ face returns a queue's batch undone where an exception ends its scope") {
  FakeDaemon daemon({.abilities = kAbilities});
  client::Connection connection(daemon.endpoint());
  client::Subscription subscription =
      connection.subscribe({.feed = "train", .mode = BW_QUEUE, .window = 8});
  for (std::uint64_t i = 0; i < 5; ++i) {
    wire::DeliveryT ticket = daemon.lay_out(0, i, i);
    ticket.subscription = 1;
    ticket.lease = 50 + i;
    daemon.deliver(std::move(ticket));
  }
  { const client::Event done = subscription.next(20s); }
  try {
    const client::Event undone = subscription.next(20s);
    client::Event moved;
    moved.batch = subscription.next(20s).batch;
    moved.batch.done();
    throw std::runtime_error("out of memory");
  } catch (const std::runtime_error&) {
    // What is taken while an exception is handled is no part of it.
    const client::Event done = subscription.next(20s);
  }
  client::Event last = subscription.next(20s);
  last.batch.return_undone();
  CHECK_FALSE(last.batch);
  CHECK(daemon.hears([](const auto& heard) {
    auto released = heard.released;
    std::sort(released.begin(), released.end());
    return heard.returned == std::vector<std::uint64_t>{51, 54} &&
           released == std::vector<std::uint64_t>{50, 52, 52, 53};
  }));
}

TEST_CASE("client: the C++ face throws what went wrong, with its code") {
  FakeDaemon daemon;
  client::Connection connection(daemon.endpoint());
  const auto code_of = [](const auto& call) {
    try {
      call();
    } catch (const client::Error& error) {
      return error.code();
    }
    return bw_status{BW_OK};
  };
  CHECK(code_of([&] { connection.subscribe({.feed = "nope"}); }) == BW_NOT_FOUND);
  client::Subscription subscription = connection.subscribe({.feed = "train"});
  CHECK(code_of([&] { subscription.next(1ms); }) == BW_TIMED_OUT);
  daemon.deliver(2, 0, 0, 0);  // the refused one was 1
  const client::Event event = subscription.next(20s);
  CHECK(code_of([&] { event.batch["none"]; }) == BW_NOT_FOUND);
  CHECK(code_of([&] { event.batch["label"].as<float>(); }) == BW_SCHEMA_MISMATCH);
}
