#include <doctest/doctest.h>

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
