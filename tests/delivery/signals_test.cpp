#include <doctest/doctest.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

namespace batchwright::test {
namespace {

/// Sends a signal, over and over, to one thread, whose system calls it interrupts.
class Signals {
 public:
  explicit Signals(pthread_t target) {
    struct sigaction handler {};
    handler.sa_handler = [](int) {};  // without SA_RESTART
    sigaction(SIGUSR1, &handler, &before_);
    sender_ = std::thread([this, target] {
      while (!ended_) {
        pthread_kill(target, SIGUSR1);
        ++sent_;
        std::this_thread::yield();
      }
    });
  }
  ~Signals() {
    ended_ = true;
    sender_.join();
    sigaction(SIGUSR1, &before_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  std::uint64_t sent() const { return sent_; }

 private:
  struct sigaction before_ {};
  std::atomic<bool> ended_ = false;
  std::atomic<std::uint64_t> sent_ = 0;
  std::thread sender_;
};

}  // namespace

TEST_CASE("delivery: signals on the event loop's thread cost no one a message") {
  TestServer server(sorted_feed(1));
  const Signals signals(server.ask([](const Server&) { return pthread_self(); }));
  std::uint64_t batches = 0;
  for (const bool inline_batches : {false, true}) {
    CAPTURE(inline_batches);
    RawClient client(server.endpoint());
    if (inline_batches) {
      REQUIRE(client.hello(true) != 0);
    } else {
      client.join(server.arena_socket());
    }
    auto subscribe = subscribe_to_train();
    subscribe.epochs = 50;
    client.send(std::move(subscribe));
    CHECK(indices_to_the_end(client).size() == 50 * 40);
    batches += 50 * 40;
    CHECK(server.eventually(
        [batches](TestServer& s) { return s.count(FeedCounter::releases) == batches; }));
  }
  CHECK(signals.sent() > 100);
}

}  // namespace batchwright::test
