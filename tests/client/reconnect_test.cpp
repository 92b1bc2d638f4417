#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"
#include "tests/client/whole_run.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

ConnectionHandle patient(const FakeDaemon& daemon, std::int64_t reconnect_ms) {
  bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
  options.reconnect_ms = reconnect_ms;
  return connect(daemon.endpoint(), options);
}

bw_subscribe_options epochs(std::uint64_t count, std::uint32_t window = 2) {
  bw_subscribe_options options = train();
  options.epochs = count;
  options.window = window;
  return options;
}

}  // namespace

TEST_CASE("client: whenever the daemon dies, each batch comes once and in order") {
  for (const std::uint32_t world : {1U, 3U}) {
    // Fewer releases than a step's batches would never get past a step.
    for (std::uint64_t releases = world; releases < 12; ++releases) {
      const ThreadPolicy manners{
          .world = world, .steps = 4, .serves = true, .dies_after = releases};
      FakeDaemon daemon(manners);
      const auto connection = patient(daemon, kLong);
      const auto subscription = subscribe(connection, epochs(3));
      const Seen seen = run_to_end(subscription, [&] {
        if (daemon.is_dead()) daemon.rise(manners);
      });
      CHECK(seen.last == BW_END);
      CHECK(seen.batches == in_order(3, 4 * world));
      CHECK(seen.ended == std::vector<std::uint64_t>{0, 1, 2});
    }
  }
}

TEST_CASE("client: releases by other threads race with the daemon's deaths, and nothing is lost") {
  const ThreadPolicy manners{.world = 2, .steps = 15, .serves = true, .dies_after = 5};
  FakeDaemon daemon(manners);
  const auto connection = patient(daemon, kLong);
  const auto subscription = subscribe(connection, epochs(4, 4));
  std::mutex mutex;
  std::vector<BatchHandle> done;
  std::atomic<bool> over = false;
  std::thread releaser([&] {
    while (!over) {
      std::vector<BatchHandle> some;
      const std::lock_guard lock(mutex);
      some.swap(done);
    }
  });
  const Seen seen = run_to_end(
      subscription,
      [&] {
        if (daemon.is_dead()) daemon.rise(manners);
      },
      [&](BatchHandle batch) {
        const std::lock_guard lock(mutex);
        done.push_back(std::move(batch));
      });
  over = true;
  releaser.join();
  CHECK(seen.last == BW_END);
  CHECK(seen.batches == in_order(4, 30));
}

TEST_CASE("client: while the daemon is away a wait says so, and goes on when it is back") {
  FakeDaemon daemon({.serves = true});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, epochs(1));
  next_batch(subscription);
  daemon.die();
  CHECK(next_status(subscription, 100) == BW_TIMED_OUT);
  CHECK(error_says("the daemon at " + daemon.endpoint() + " has been gone for 0 s (closed the"));
  CHECK(error_says("trying again"));
  daemon.rise({.serves = true});
  CHECK(bw_batch_get_header(next_batch(subscription).get())->index == 1);
  CHECK(next_status(subscription) == BW_EPOCH_END);
  bw_connection_info info{};
  info.struct_size = sizeof info;
  REQUIRE(bw_connection_get_info(connection.get(), &info) == BW_OK);
  CHECK(info.reconnects == 1);
  CHECK(info.inline_batches == 0);
}

TEST_CASE("client: a relative endpoint is that of the folder in which the program connected") {
  const auto here = std::filesystem::current_path();
  for (const bool goes_up : {false, true}) {
    FakeDaemon daemon({.serves = true});
    const std::filesystem::path socket(daemon.endpoint().substr(kIpc.size()));
    const std::string name = socket.filename().string();
    const std::string folder = socket.parent_path().filename().string();
    std::filesystem::current_path(socket.parent_path());
    const auto connection = connect("ipc://" + (goes_up ? "../" + folder + "/" + name : name));
    const auto subscription = subscribe(connection, epochs(1));
    std::filesystem::current_path(here);
    next_batch(subscription);
    daemon.die();
    daemon.rise({.serves = true});
    CHECK(bw_batch_get_header(next_batch(subscription).get())->index == 1);
  }
}

TEST_CASE("client: a daemon that does not come back in time is given up for good") {
  FakeDaemon daemon;
  const auto connection = patient(daemon, 150);
  const auto subscription = subscribe(connection);
  daemon.die();
  CHECK(next_status(subscription) == BW_DISCONNECTED);
  CHECK(error_says("giving up"));
  CHECK(next_status(subscription) == BW_DISCONNECTED);
}

TEST_CASE("client: a daemon that comes back with another plan ends the subscription") {
  FakeDaemon daemon({.serves = true});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  next_batch(subscription);
  daemon.die();
  daemon.rise({.data = 9, .serves = true});
  CHECK(next_status(subscription) == BW_FINGERPRINT_MISMATCH);
  CHECK(error_says("data differs"));
  CHECK(next_status(subscription) == BW_FINGERPRINT_MISMATCH);
  CHECK(position_of(subscription).step == 1);
}

TEST_CASE("client: a daemon that comes back may have newer data of an epoch that was not begun") {
  FakeDaemon daemon({.serves = true});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.die();
  daemon.rise({.data = 9, .compares = false, .serves = true});
  const auto first = next_batch(subscription);
  CHECK(bw_batch_get_header(first.get())->index == 0);
  CHECK(position_of(subscription).fingerprint.data == 9);
  // Of an epoch that is begun the data stay what they are.
  daemon.die();
  daemon.rise({.data = 10, .compares = false, .serves = true});
  CHECK(next_status(subscription) == BW_FINGERPRINT_MISMATCH);
  CHECK(error_says("data changed"));
}

TEST_CASE("client: a daemon that dies while it is greeted is greeted again") {
  FakeDaemon daemon({.serves = true});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  next_batch(subscription);
  for (int deaths = 0; deaths < 3; ++deaths) {
    daemon.die();
    daemon.rise({.dies_at_hello = true});
    while (!daemon.is_dead()) CHECK(next_status(subscription, 20) == BW_TIMED_OUT);
  }
  daemon.rise({.serves = true});
  CHECK(bw_batch_get_header(next_batch(subscription).get())->index == 1);
  CHECK(daemon.hears([](const auto& heard) {
    return heard.hellos.size() == 5 && heard.hellos[0].token != 0 &&
           heard.hellos[4].token == heard.hellos[0].token;
  }));
}

TEST_CASE("client: the first greeting outlives a daemon as well") {
  FakeDaemon daemon({.dies_at_hello = true});
  ConnectionHandle connection;
  std::thread connecting([&] { connection = connect(daemon.endpoint()); });
  CHECK(daemon.hears([](const auto& heard) { return heard.hellos.size() == 1; }));
  daemon.rise({});
  connecting.join();
  CHECK(bw_feed_count(connection.get()) == 1);
}

TEST_CASE("client: a batch outlives the daemon, and its release concerns no other one") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  auto held = next_batch(subscription);
  daemon.die();
  daemon.rise({});
  CHECK(hears_in_a_wait(daemon, subscription, [](const auto& heard) {
    return heard.subscribed.size() == 2 && heard.subscribed[1].step == 1 &&
           heard.subscribed[1].expects_fingerprint && heard.subscribed[1].fingerprint->data() == 1;
  }));
  CHECK(static_cast<const float*>(bw_batch_tensor(held.get(), 0)->data)[9] ==
        FakeDaemon::value(0, 1, 1, 1));
  held.reset();
  const std::uint64_t lease = daemon.deliver(1, 0, 1, 1);
  next_batch(subscription);
  CHECK(daemon.hears(
      [&](const auto& heard) { return heard.released == std::vector<std::uint64_t>{lease}; }));
}

TEST_CASE("client: a daemon that knows nothing of the session, or says goodbye, is greeted again") {
  FakeDaemon daemon({.serves = true});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  next_batch(subscription);
  wire::RefusedT refused;
  refused.code = static_cast<std::uint16_t>(ErrorCode::disconnected);
  refused.message = "say Hello first";
  daemon.send(std::move(refused));
  CHECK(bw_batch_get_header(next_batch(subscription).get())->index == 1);
  daemon.send(wire::ByeT{});
  CHECK(next_status(subscription) == BW_EPOCH_END);
}

TEST_CASE("client: a subscription can be made and ended while the daemon is away") {
  FakeDaemon daemon({.serves = true});
  const auto connection = connect(daemon.endpoint());
  auto first = subscribe(connection);
  next_batch(first);
  daemon.die();
  CHECK(next_status(first, 0) == BW_TIMED_OUT);
  first.reset();
  std::thread back([&] { daemon.rise({.serves = true}); });
  const auto second = subscribe(connection);
  back.join();
  CHECK(bw_batch_get_header(next_batch(second).get())->index == 0);
  CHECK(daemon.hears([](const auto& heard) {
    return heard.subscribed.size() == 2 && heard.subscribed[1].subscription == 2;
  }));
}

TEST_CASE("client: bw_close ends a wait for a daemon that is away") {
  FakeDaemon daemon;
  auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.die();
  CHECK(next_status(subscription, 0) == BW_TIMED_OUT);
  bw_status status = BW_OK;
  std::thread waiter([&] { status = next_status(subscription); });
  connection.reset();
  waiter.join();
  CHECK(status == BW_DISCONNECTED);
}
