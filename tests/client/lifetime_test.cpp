#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

float last_value(const BatchHandle& batch) {
  return static_cast<const float*>(bw_batch_tensor(batch.get(), 0)->data)[9];
}

/// Runs `act` in a forked child; its exit code, or -1 when it did not exit by itself.
int in_child(const std::function<bool()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a child that hangs is ended by it
    _exit(act() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("client: a release reaches the daemon while another thread waits for a batch") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  const std::uint64_t lease = daemon.deliver(1, 0, 0, 0);
  auto batch = next_batch(subscription);
  std::thread waiter([&] { next_batch(subscription); });
  batch.reset();
  CHECK(daemon.hears(
      [&](const auto& heard) { return heard.released == std::vector<std::uint64_t>{lease}; }));
  daemon.deliver(1, 0, 1, 1);  // for the waiter, which releases it
  waiter.join();
  CHECK(daemon.hears([](const auto& heard) { return heard.released.size() == 2; }));
}

TEST_CASE("client: releases from many threads all arrive") {
  constexpr std::size_t kBatches = 60;
  FakeDaemon daemon({.steps = kBatches});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kBatches; ++i) {
    daemon.deliver(1, 0, i, i);
    threads.emplace_back([batch = next_batch(subscription)]() mutable { batch.reset(); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(daemon.hears([](const auto& heard) { return heard.released.size() == kBatches; }));
}

TEST_CASE("client: a second thread on a connection is told that it is busy") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  std::atomic<bool> over = false;
  std::atomic<int> busy = 0;
  const auto take = [&] {
    bw_batch* raw = nullptr;
    bw_status status = BW_BUSY;
    while (!over && (status == BW_BUSY || status == BW_TIMED_OUT)) {
      status = bw_next(subscription.get(), 10, &raw, nullptr);
      if (status == BW_BUSY) over = true, ++busy;
    }
    bw_release(raw);
  };
  std::thread one(take);
  std::thread two(take);
  one.join();
  two.join();
  CHECK(busy > 0);
}

TEST_CASE("client: a client that will not look for a dead daemon is told at once") {
  FakeDaemon daemon;
  bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
  options.reconnect_ms = 0;
  const auto connection = connect(daemon.endpoint(), options);
  const auto subscription = subscribe(connection);
  bw_status status = BW_OK;
  const auto start = std::chrono::steady_clock::now();
  std::thread waiter([&] { status = next_status(subscription); });
  daemon.die();
  waiter.join();
  CHECK(status == BW_DISCONNECTED);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(kLong / 2));
  CHECK(next_status(subscription) == BW_DISCONNECTED);
  CHECK(error_says("closed the connection"));
}

TEST_CASE("client: a batch stays readable when daemon, subscription and connection are gone") {
  BatchHandle batch;
  {
    FakeDaemon daemon;
    const auto connection = connect(daemon.endpoint());
    const auto subscription = subscribe(connection);
    daemon.deliver(1, 0, 0, 0);
    batch = next_batch(subscription);
  }
  CHECK(last_value(batch) == FakeDaemon::value(0, 1, 1, 1));
  CHECK(std::string(bw_batch_key(batch.get(), 0, nullptr)) == "one");
  bw_position position{};
  REQUIRE(bw_batch_position(batch.get(), &position) == BW_OK);
  CHECK(position.step == 1);
}

TEST_CASE("client: a batch names the mapping it lies in, which can be kept without the batch") {
  struct LetGo {
    void operator()(bw_memory* memory) const { bw_memory_release(memory); }
  };
  std::unique_ptr<bw_memory, LetGo> kept;
  const float* value = nullptr;
  {
    FakeDaemon daemon;
    const auto connection = connect(daemon.endpoint());
    const auto subscription = subscribe(connection);
    daemon.deliver(1, 0, 0, 0);
    daemon.deliver(1, 0, 1, 1);
    const auto one = next_batch(subscription);
    const auto two = next_batch(subscription);
    const bw_batch_header& header = *bw_batch_get_header(one.get());
    const auto* begin = static_cast<const char*>(header.memory);
    CHECK(header.shared == 1);
    CHECK(bw_batch_get_header(two.get())->memory == begin);
    for (const void* inside :
         {bw_batch_tensor(one.get(), 0)->data, static_cast<const void*>(header.lengths),
          bw_batch_tensor(two.get(), 0)->data}) {
      CHECK(static_cast<const char*>(inside) >= begin);
      CHECK(static_cast<const char*>(inside) < begin + header.memory_bytes);
    }
    value = &static_cast<const float*>(bw_batch_tensor(one.get(), 0)->data)[9];
    kept.reset(bw_batch_memory(one.get()));
    REQUIRE(kept);
  }
  CHECK(*value == FakeDaemon::value(0, 1, 1, 1));  // else a fault: it is not mapped
  CHECK(bw_batch_memory(nullptr) == nullptr);
}

TEST_CASE("client: the daemon hears of the end with the last release, and not before") {
  FakeDaemon daemon;
  auto connection = connect(daemon.endpoint());
  auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  auto batch = next_batch(subscription);
  subscription.reset();
  connection.reset();
  // A whole conversation's begin takes longer than a goodbye would have taken.
  const auto another = connect(daemon.endpoint());
  CHECK(daemon.hears([](const auto& heard) { return heard.byes == 0 && heard.lost == 0; }));
  batch.reset();
  CHECK(daemon.hears([](const auto& heard) { return heard.byes == 1 && heard.lost == 1; }));
}

TEST_CASE("client: a subscription ends with its last batch, and the connection goes on") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  auto first = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  auto batch = next_batch(first);
  first.reset();
  const auto second = subscribe(connection);  // sent after what the first had to say
  CHECK(daemon.hears([](const auto& heard) {
    return heard.subscribed.size() == 2 && heard.unsubscribed.empty();
  }));
  batch.reset();
  CHECK(daemon.hears([](const auto& heard) {
    return heard.unsubscribed == std::vector<std::uint32_t>{1} && heard.released.empty();
  }));
  daemon.deliver(1, 0, 1, 1);  // too late: for no one
  daemon.deliver(2, 0, 0, 0);
  CHECK(bw_batch_get_header(next_batch(second).get())->index == 0);
}

TEST_CASE("client: closing ends a wait in another thread") {
  FakeDaemon daemon;
  auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  bw_status status = BW_OK;
  std::string text;
  std::thread waiter([&] {
    status = next_status(subscription);
    text = bw_error_message();
  });
  connection.reset();
  waiter.join();
  CHECK(status == BW_DISCONNECTED);
  CHECK(text.find("bw_close") != std::string::npos);
}

TEST_CASE("client: a forked child is told so, and the parent goes on undisturbed") {
  FakeDaemon daemon;
  auto connection = connect(daemon.endpoint());
  auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  auto batch = next_batch(subscription);
  const int code = in_child([&] {
    bw_batch* raw = nullptr;
    bw_subscription* other = nullptr;
    const bw_subscribe_options options = train();
    return bw_next(subscription.get(), kLong, &raw, nullptr) == BW_FORKED &&
           std::string(bw_error_message()).find("open its own connection") != std::string::npos &&
           bw_subscribe(connection.get(), &options, &other) == BW_FORKED &&
           last_value(batch) == FakeDaemon::value(0, 1, 1, 1) &&
           bw_release(batch.release()) == BW_FORKED &&
           bw_unsubscribe(subscription.release()) == BW_FORKED &&
           bw_close(connection.release()) == BW_FORKED;
  });
  CHECK(code == 0);
  daemon.deliver(1, 0, 1, 1);
  CHECK(bw_batch_get_header(next_batch(subscription).get())->index == 1);
}

TEST_CASE("client: a child that lives on does not keep its parent's connection open") {
  FakeDaemon daemon;
  auto connection = connect(daemon.endpoint());
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    close(pipe_ends[1]);
    static_cast<void>(!read(pipe_ends[0], &byte, 1));  // until the parent ends it
    _exit(0);
  }
  close(pipe_ends[0]);
  connection.reset();
  CHECK(daemon.hears([](const auto& heard) { return heard.lost == 1; }));
  close(pipe_ends[1]);
  waitpid(child, nullptr, 0);
}
