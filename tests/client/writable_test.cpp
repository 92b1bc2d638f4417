#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "client/library/batchwright/client.hpp"
#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

client::Batch next_of(client::Subscription& subscription) {
  client::Event event = subscription.next(20s);
  REQUIRE(event.is_batch());
  return std::move(event.batch);
}

/// Whether the batch is as the daemon laid it out.
bool is_clean(const client::Batch& batch) {
  const auto values = batch["features"].as<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != FakeDaemon::value(batch.header().index, i / 6, i / 2 % 3, i % 2)) return false;
  }
  return true;
}

void write_all(const client::Batch& batch) {
  for (float& value : batch["features"].as_writable<float>()) value = -7;
}

}  // namespace

TEST_CASE("client: what is written to a writable batch is its holder's alone") {
  FakeDaemon daemon;
  client::Connection connection(daemon.endpoint());
  client::Subscription one = connection.subscribe({.feed = "train", .writable = true});
  client::Subscription two = connection.subscribe({.feed = "train", .writable = true});
  client::Subscription reader = connection.subscribe({.feed = "train"});
  wire::DeliveryT ticket = daemon.lay_out(0, 0, 0);
  for (const std::uint32_t subscription : {1U, 2U, 3U}) {
    ticket.subscription = subscription;
    ticket.lease = 100 + subscription;
    daemon.deliver(ticket);
  }
  const client::Batch mine = next_of(one);
  const client::Batch theirs = next_of(two);
  const client::Batch read = next_of(reader);
  CHECK(mine.header().writable == 1);
  CHECK(mine.header().shared == 0);
  for (float& value : mine["features"].as_writable<float>()) value = -7;
  CHECK(mine["features"].as<float>().back() == -7);
  CHECK(theirs["features"].as<float>().back() == FakeDaemon::value(0, 1, 2, 1));
  CHECK(read["features"].as<float>().back() == FakeDaemon::value(0, 1, 2, 1));
  CHECK(read.header().writable == 0);
  CHECK_THROWS_AS(static_cast<void>(read["features"].as_writable<float>()), client::Error);
}

TEST_CASE("client: a batch taken from the slot of one that was written to is clean") {
  FakeDaemon daemon;
  client::Connection connection(daemon.endpoint());
  const wire::DeliveryT place = daemon.lay_out(0, 0, 0);
  for (std::uint32_t number = 1; number <= 3; ++number) {
    client::Subscription subscription = connection.subscribe({.feed = "train", .writable = true});
    wire::DeliveryT ticket = place;
    ticket.subscription = number;
    ticket.lease = 100 + number;
    daemon.deliver(ticket);
    const client::Batch batch = next_of(subscription);
    CHECK(batch["features"].as<float>().back() == FakeDaemon::value(0, 1, 2, 1));
    batch["features"].as_writable<float>().back() = -7;
  }
}

TEST_CASE("client: a writable batch outlives its connection, its daemon, and lies in line") {
  client::Batch batch;
  {
    FakeDaemon daemon;
    client::Connection connection(daemon.endpoint());
    client::Subscription one = connection.subscribe({.feed = "train", .writable = true});
    daemon.deliver(1, 0, 0, 0);
    batch = next_of(one);
  }
  const auto values = batch["features"].as_writable<float>();
  CHECK(reinterpret_cast<std::uintptr_t>(values.data()) % 64 == 0);
  values.front() = 5;
  CHECK(batch["features"].as<float>().front() == 5);
}

TEST_CASE("client: a batch that came as a message may be written to when that was asked for") {
  FakeDaemon daemon({.serves = true});
  client::Connection connection(daemon.endpoint(), {.inline_batches = true});
  client::Subscription one = connection.subscribe({.feed = "train", .writable = true});
  const client::Batch batch = next_of(one);
  batch["features"].as_writable<float>().back() = 9;
  CHECK(batch["features"].as<float>().back() == 9);
}

TEST_CASE("client: many writable batches, held several at a time, come as the daemon made them") {
  FakeDaemon daemon({.steps = 300, .serves = true});  // in 64 slots
  client::Connection connection(daemon.endpoint());
  client::Subscription writer =
      connection.subscribe({.feed = "train", .window = 3, .epochs = 2, .writable = true});
  std::vector<client::Batch> held;
  std::size_t batches = 0;
  while (client::Event event = writer.next(20s)) {
    if (!event.is_batch()) continue;
    REQUIRE(is_clean(event.batch));
    if (batches++ % 40 < 30) write_all(event.batch);
    held.push_back(std::move(event.batch));
    if (held.size() == 3) held.erase(held.begin() + static_cast<std::ptrdiff_t>(batches % 3));
  }
  CHECK(batches == 600);
}

TEST_CASE("client: writable is 0 or 1") {
  FakeDaemon daemon;
  const ConnectionHandle connection = connect(daemon.endpoint());
  bw_subscribe_options options = train();
  options.writable = 2;
  bw_subscription* raw = nullptr;
  CHECK(bw_subscribe(connection.get(), &options, &raw) == BW_INVALID_ARGUMENT);
  CHECK(error_says("writable is 2; 0 and 1 are allowed"));
}
