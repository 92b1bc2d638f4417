#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

namespace batchwright::test {

inline constexpr std::uint64_t kEpochBatches = 40;

/// 40 batches, 8 slots.
inline FeedSettings few_slots(std::chrono::milliseconds patience) {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 8;
  settings.patience = patience;
  return settings;
}

inline wire::SubscribeT one_at_a_time() {
  auto subscribe = subscribe_to_train();
  subscribe.window = 1;
  return subscribe;
}

template <class Client>
void ask(Client& client) {
  wire::AskT question;
  question.subscription = 1;
  client.send(std::move(question));
}

/// Takes and releases until the daemon says that a straggler is waited for. The number of batches.
template <class Client>
std::uint64_t run_ahead(Client& client) {
  std::uint64_t taken = 0;
  ask(client);
  while (taken < kEpochBatches) {
    const std::optional<ControlMessage> message = client.receive();
    if (!message) break;
    if (const auto* delivery = message->as<wire::Delivery>()) {
      ++taken;
      client.send(release_of(unpacked(*delivery)));
    } else if (const auto* waiting = message->as<wire::Waiting>()) {
      if (waiting->reason()->str().find("it is behind") != std::string::npos) break;
      ask(client);
    }
  }
  return taken;
}

template <class Client>
std::uint64_t take_one(Client& client) {
  const auto ticket = next_ticket(client);
  REQUIRE(ticket);
  client.send(release_of(*ticket));
  return ticket->index;
}

}  // namespace batchwright::test
