#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::uint64_t kBatches = 40;

/// 40 batches, 8 slots.
FeedSettings few_slots(std::chrono::milliseconds patience) {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 8;
  settings.patience = patience;
  return settings;
}

wire::SubscribeT one_at_a_time() {
  auto subscribe = subscribe_to_train();
  subscribe.window = 1;
  return subscribe;
}

void ask(RawClient& client) {
  wire::AskT question;
  question.subscription = 1;
  client.send(std::move(question));
}

/// Takes and releases until the daemon says that a slot is waited for. The number of batches.
std::uint64_t run_ahead(RawClient& client) {
  std::uint64_t taken = 0;
  ask(client);
  while (taken < kBatches) {
    const auto message = client.receive();
    if (!message) break;
    if (const auto* delivery = message->as<wire::Delivery>()) {
      ++taken;
      client.send(release_of(unpacked(*delivery)));
    } else if (const auto* waiting = message->as<wire::Waiting>()) {
      if (waiting->reason()->str().starts_with("a slot: ")) break;
      ask(client);
    }
  }
  return taken;
}

std::uint64_t take_one(RawClient& client) {
  const auto ticket = next_ticket(client);
  REQUIRE(ticket);
  client.send(release_of(*ticket));
  return ticket->index;
}

bool is_left_behind(TestServer& server) {
  return server.ask([](const Server& s) {
    const auto& all = s.feeds()[0]->subscriptions();
    return std::any_of(all.begin(), all.end(),
                       [](const auto& entry) { return entry.second.left_behind; });
  });
}

}  // namespace

TEST_CASE("delivery: who runs ahead waits for a straggler, and every batch is made once") {
  TestServer server(few_slots(std::chrono::hours(1)), 4 * kBatches);
  RawClient slow(server.endpoint());
  RawClient fast(server.endpoint());
  REQUIRE(join(slow, server.arena_socket(), one_at_a_time()));
  REQUIRE(join(fast, server.arena_socket(), one_at_a_time()));
  const auto first = next_ticket(slow);
  REQUIRE(first);
  // The slots hold what the slow one has and needs, and nothing is made that would push it out.
  const std::uint64_t ahead = run_ahead(fast);
  CHECK(ahead == 8);
  CHECK_FALSE(is_left_behind(server));
  slow.send(release_of(*first));
  for (std::uint64_t i = 1; i < ahead; ++i) CHECK(take_one(slow) == i);
  for (std::uint64_t i = ahead; i < kBatches; ++i) {
    CHECK(take_one(fast) == i);
    CHECK(take_one(slow) == i);
  }
  CHECK(server.count(FeedCounter::batches_assembled) == kBatches);
}

TEST_CASE("delivery: patience with a straggler ends, and both get the whole epoch") {
  TestServer server(few_slots(std::chrono::milliseconds(1)), 4 * kBatches);
  RawClient slow(server.endpoint());
  RawClient fast(server.endpoint());
  REQUIRE(join(slow, server.arena_socket(), one_at_a_time()));
  REQUIRE(join(fast, server.arena_socket(), one_at_a_time()));
  const auto first = next_ticket(slow);
  REQUIRE(first);
  for (std::uint64_t i = 0; i < 30; ++i) CHECK(take_one(fast) == i);
  CHECK(is_left_behind(server));
  slow.send(release_of(*first));
  for (std::uint64_t i = 1; i < 30; ++i) CHECK(take_one(slow) == i);
  // It has caught up, and would be waited for again.
  CHECK(server.eventually([](TestServer& s) { return !is_left_behind(s); }));
  for (std::uint64_t i = 30; i < kBatches; ++i) {
    CHECK(take_one(fast) == i);
    CHECK(take_one(slow) == i);
  }
  CHECK(server.count(FeedCounter::batches_reassembled) > 0);
}

TEST_CASE("delivery: who leaves is waited for no more") {
  TestServer server(few_slots(std::chrono::hours(1)), 4 * kBatches);
  RawClient slow(server.endpoint());
  RawClient fast(server.endpoint());
  REQUIRE(join(slow, server.arena_socket(), one_at_a_time()));
  REQUIRE(join(fast, server.arena_socket(), one_at_a_time()));
  REQUIRE(next_ticket(slow));
  std::uint64_t next = run_ahead(fast);
  slow.die();
  while (next < kBatches) CHECK(take_one(fast) == next++);
}

TEST_CASE("delivery: a feed that waits for a straggler can be removed") {
  TestServer server(few_slots(std::chrono::hours(1)), 4 * kBatches);
  const auto left = [](Server& s) { return s.memory().left(); };
  const std::uint64_t all =
      server.ask(left) + server.ask([](Server& s) { return s.feeds()[0]->arena().bytes(); });
  RawClient slow(server.endpoint());
  RawClient fast(server.endpoint());
  REQUIRE(join(slow, server.arena_socket(), one_at_a_time()));
  REQUIRE(join(fast, server.arena_socket(), one_at_a_time()));
  REQUIRE(next_ticket(slow));
  run_ahead(fast);
  server.ask([](Server& s) {
    s.remove_feed("train");
    return 0;
  });
  CHECK(read_until<wire::Refused>(fast));
  CHECK(server.eventually([&](TestServer& s) { return s.ask(left) == all; }));
}
