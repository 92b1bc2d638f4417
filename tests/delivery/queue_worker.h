#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <utility>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"
#include "tests/support/temporary_folder.h"

namespace batchwright::test {

/// Ten batches of four sequences.
inline FeedSettings queue_feed(const TemporaryFolder& folder) {
  FeedSettings settings = sorted_feed(4);
  settings.journal = folder / "journal";
  return settings;
}

inline wire::SubscribeT in_queue(std::uint32_t window = 1, std::uint64_t epochs = 1) {
  auto subscribe = subscribe_to_train();
  subscribe.mode = wire::Mode::queue;
  subscribe.window = window;
  subscribe.epochs = epochs;
  return subscribe;
}

/// A client in the queue, after its Subscribed.
struct Worker {
  explicit Worker(TestServer& server, wire::SubscribeT subscribe = in_queue(),
                  std::uint64_t token = 0)
      : client(server.endpoint()) {
    wire::HelloT hello;
    hello.protocol = kProtocolVersion;
    hello.token = token;
    client.join(server.arena_socket(), std::move(hello));
    client.send(std::move(subscribe));
    REQUIRE(read_until<wire::Subscribed>(client));
  }
  wire::DeliveryT take() {
    const auto ticket = next_ticket(client);
    REQUIRE(ticket);
    return *ticket;
  }
  void release(const wire::DeliveryT& ticket) { client.send(release_of(ticket)); }
  void give_up(const wire::DeliveryT& ticket) {
    wire::ReleaseT release = release_of(ticket);
    release.undone = true;
    client.send(std::move(release));
  }
  bool ended() {
    const auto message = client.receive();
    return message && message->as<wire::EpochEnd>() != nullptr;
  }

  RawClient client;
};

/// The different batches among the next ten, each done at once.
inline std::set<std::uint64_t> all_of_epoch(Worker& worker) {
  std::set<std::uint64_t> indices;
  for (int i = 0; i < 10; ++i) {
    const auto ticket = worker.take();
    indices.insert(ticket.index);
    worker.release(ticket);
  }
  return indices;
}

}  // namespace batchwright::test
