#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <thread>

#include "tests/delivery/raw_client.h"
#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("delivery: poisoned slots do not disturb clients that still read") {
  FeedSettings settings = sorted_feed(4);
  settings.poison = true;
  settings.slots = 2;
  TestServer server(settings);
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_train());
  CHECK(indices_to_the_end(client) == numbers(0, 10));
}

TEST_CASE("delivery: as many laggards as slots all get on") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 3;
  TestServer server(settings);
  std::vector<std::thread> clients;
  std::array<std::vector<std::uint64_t>, 3> taken;
  for (std::uint64_t c = 0; c < 3; ++c) {
    clients.emplace_back([&server, &taken, c] {
      RawClient client(server.endpoint());
      client.join(server.arena_socket());
      auto subscribe = subscribe_to_train();
      subscribe.epoch = c;
      client.send(std::move(subscribe));
      taken[c] = indices_to_the_end(client);
    });
  }
  for (std::thread& client : clients) client.join();
  for (const auto& indices : taken) CHECK(indices == numbers(0, 10));
}
