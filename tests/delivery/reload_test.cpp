#include <doctest/doctest.h>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Another feed of the server's dataset, taken up on its loop.
template <class Take>
void prepared(TestServer& server, FeedSettings settings, Take take) {
  const std::string folder = server.endpoint().substr(6, server.endpoint().size() - 8);
  Catalog catalog;
  auto dataset = catalog.open({folder + "/data"});
  REQUIRE(dataset);
  server.ask([&](Server& s) {
    auto resources = prepare_feed(*dataset, settings, s.memory().left());
    if (!resources || !s.memory().take(resources->arena->bytes())) return false;
    take(s, settings, std::move(*resources));
    return true;
  });
}

void replace_train(TestServer& server, std::uint32_t slots) {
  FeedSettings settings = sorted_feed(4);
  settings.slots = slots;
  prepared(server, settings, [](Server& s, FeedSettings& wanted, FeedResources resources) {
    s.replace_feed(wanted, std::move(resources), "feed train has changed: slots");
  });
}

}  // namespace

TEST_CASE("delivery: a feed that is replaced says so, and its successor goes on") {
  TestServer server(sorted_feed(4));
  const auto left = [](Server& s) { return s.memory().left(); };
  const std::uint64_t before = server.ask(left) + server.feed().arena_bytes;
  RawClient client(server.endpoint());
  REQUIRE(join(client, server.arena_socket(), subscribe_to_train()));
  const auto held = next_ticket(client);
  REQUIRE(held);
  replace_train(server, 6);
  const auto refused = read_until<wire::Refused>(client);
  REQUIRE(refused);
  CHECK(refused->as<wire::Refused>()->code() ==
        static_cast<std::uint16_t>(ErrorCode::disconnected));
  CHECK(refused->as<wire::Refused>()->subscription() == 1);
  auto again = subscribe_to_train();
  again.step = 1;
  client.send(std::move(again));
  const auto answer = read_until<wire::Subscribed>(client);
  REQUIRE(answer);
  CHECK(answer->as<wire::Subscribed>()->arena() == held->arena + 0x10000);
  const auto next = next_ticket(client);
  REQUIRE(next);
  CHECK(next->step == 1);
  client.send(release_of(*held));  // of the feed that is gone: ignored
  client.send(release_of(*next));
  CHECK(next_ticket(client).has_value());
  // The old arena is given back, the new one taken.
  CHECK(server.eventually(
      [&](TestServer& s) { return s.ask(left) == before - s.feed().arena_bytes; }));
}

TEST_CASE("delivery: a feed that is removed says so, and the session goes on") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  REQUIRE(join(client, server.arena_socket(), subscribe_to_train()));
  const auto held = next_ticket(client);
  REQUIRE(held);
  server.ask([](Server& s) {
    s.remove_feed("train");
    return 0;
  });
  const auto refused = read_until<wire::Refused>(client);
  REQUIRE(refused);
  CHECK(refused->as<wire::Refused>()->code() == static_cast<std::uint16_t>(ErrorCode::not_found));
  client.send(release_of(*held));
  client.send(subscribe_to_train(2));
  const auto unknown = read_until<wire::Refused>(client);
  REQUIRE(unknown);
  CHECK(unknown->as<wire::Refused>()->subscription() == 2);
  CHECK(server.sessions() == 1);
}

TEST_CASE("delivery: batches on their way to a client outlive the feed they are of") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.hello(true);
  auto subscribe = subscribe_to_train();
  subscribe.window = 8;
  subscribe.epochs = 0;
  client.send(std::move(subscribe));
  REQUIRE(read_until<wire::Delivery>(client));
  for (int i = 0; i < 5; ++i) replace_train(server, i % 2 == 0 ? 6 : 16);
  REQUIRE(read_until<wire::Refused>(client));
  client.send(subscribe_to_train());
  const auto ticket = read_until<wire::Delivery>(client);
  REQUIRE(ticket);
  CHECK(client.batch().size() == ticket->as<wire::Delivery>()->size());
}
