// Calls on one handle of a connection while another thread closes it, and news of what is closed.

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"
#include "tests/client/whole_run.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

bw_status info_of(const bw_connection* connection) {
  bw_connection_info info{};
  info.struct_size = sizeof info;
  return bw_connection_get_info(connection, &info);
}

bool is_told(bw_status status) {
  return status == BW_OK || status == BW_BUSY || status == BW_DISCONNECTED ||
         status == BW_INVALID_ARGUMENT;
}

}  // namespace

TEST_CASE("client: bw_close beside any call on the same handle ends it, or is told by it") {
  FakeDaemon daemon;
  for (int round = 0; round < 20; ++round) {
    bw_connection* connection = connect(daemon.endpoint()).release();
    std::atomic<bool> closed = false;
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        while (!closed) {
          bw_subscription* raw = nullptr;
          const bw_subscribe_options options = train();
          if (!is_told(bw_subscribe(connection, &options, &raw))) ++wrong;
          bw_unsubscribe(raw);
        }
      });
      threads.emplace_back([&] {
        while (!closed) {
          if (!is_told(info_of(connection)) || bw_feed_count(connection) > 1) ++wrong;
        }
      });
    }
    CHECK(bw_close(connection) == BW_OK);
    closed = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("client: a handle that was closed is known as such, also when others were made") {
  FakeDaemon daemon;
  bw_connection* stale = connect(daemon.endpoint()).release();
  CHECK(bw_close(stale) == BW_OK);
  const auto another = connect(daemon.endpoint());
  CHECK(another.get() != stale);
  CHECK(info_of(stale) == BW_INVALID_ARGUMENT);
  CHECK(error_says("this connection is closed, or never was one"));
  const bw_subscribe_options options = train();
  bw_subscription* raw = nullptr;
  CHECK(bw_subscribe(stale, &options, &raw) == BW_INVALID_ARGUMENT);
  CHECK(bw_close(stale) == BW_INVALID_ARGUMENT);
  CHECK(bw_feed_count(stale) == 0);
  CHECK(bw_feed_at(stale, 0) == nullptr);
}

TEST_CASE("client: a fork beside calls leaves the child's handles in order") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  std::atomic<bool> over = false;
  std::thread busy([&] {
    while (!over) info_of(connection.get());
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a child that waits for the lock is ended by it
      _exit(info_of(connection.get()) == BW_OK ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
  over = true;
  busy.join();
}

TEST_CASE("client: a Subscribed that comes after its subscription was given up wakes nothing") {
  FakeDaemon daemon({.answers_subscribe = false});
  const auto grant = [&daemon](std::uint32_t subscription) {
    wire::SubscribedT granted;
    granted.subscription = subscription;
    granted.fingerprint = std::make_unique<wire::Fingerprint>(1, 2, 3);
    granted.steps = granted.world = granted.batches_per_step = 1;
    granted.window = granted.arena = 1;
    daemon.send(std::move(granted));
  };
  bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
  options.timeout_ms = 2000;
  const auto connection = connect(daemon.endpoint(), options);
  std::thread granting([&] {
    CHECK(daemon.hears([](const auto& heard) { return heard.subscribed.size() == 1; }));
    grant(1);
  });
  const auto first = subscribe(connection);
  granting.join();
  bw_subscription* raw = nullptr;
  const bw_subscribe_options wanted = train();
  CHECK(bw_subscribe(connection.get(), &wanted, &raw) == BW_TIMED_OUT);
  CHECK(daemon.hears([](const auto& heard) { return heard.unsubscribed.size() == 1; }));
  grant(2);
  daemon.deliver(2, 0, 0, 0);
  daemon.deliver(1, 0, 0, 0);  // after them
  next_batch(first);
  daemon.die();
  daemon.rise({});
  CHECK(hears_in_a_wait(daemon, first,
                        [](const auto& heard) { return heard.subscribed.size() == 3; }));
  daemon.deliver(1, 0, 1, 1);
  next_batch(first);  // by now it would have asked for the other
  CHECK(daemon.has_heard([](const auto& heard) {
    return heard.subscribed.size() == 3 && heard.subscribed[2].subscription == 1;
  }));
}
