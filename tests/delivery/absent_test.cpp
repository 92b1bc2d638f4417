// Feeds that cannot be served just now, as their clients see it.

#include <doctest/doctest.h>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

ServerSettings patient(std::chrono::milliseconds grace) {
  ServerSettings settings;
  settings.feed_grace = grace;
  return settings;
}

void make_absent(TestServer& server, ErrorCode code) {
  server.ask([code](Server& s) {
    s.set_absent({"late", {"/nowhere"}, {code, "dataset /nowhere does not exist"}});
    return 0;
  });
}

void make_present(TestServer& server) {
  Catalog catalog;
  auto dataset = catalog.open({server.dataset()});
  REQUIRE(dataset);
  FeedSettings settings = sorted_feed(4);
  settings.name = "late";
  auto resources = prepare_feed(*dataset, settings, std::uint64_t{1} << 30);
  REQUIRE(resources);
  server.ask([&](Server& s) {
    s.add_feed(settings, std::move(*resources));
    return 0;
  });
}

wire::SubscribeT subscribe_to_late(std::uint32_t number = 1) {
  auto subscribe = subscribe_to_train(number);
  subscribe.feed = "late";
  subscribe.epochs = 1;
  return subscribe;
}

std::string reason(RawClient& client) {
  const auto message = client.receive_news();
  if (!message || message->as<wire::Waiting>() == nullptr) return "";
  return message->as<wire::Waiting>()->reason()->str();
}

const std::string kWhy = "feed late is not served: dataset /nowhere does not exist";

}  // namespace

TEST_CASE("delivery: a client of an absent feed is told why, waits, and is served") {
  TestServer server(sorted_feed(4), patient(std::chrono::hours(1)));
  make_absent(server, ErrorCode::store_unavailable);
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_late());
  CHECK(reason(client) == kWhy);
  wire::AskT question;
  question.subscription = 1;
  client.send(std::move(question));
  CHECK(reason(client) == kWhy);
  client.send(subscribe_to_late());
  CHECK(refusal(client, ErrorCode::invalid_argument).find("subscription 1 is taken") !=
        std::string::npos);
  make_present(server);
  CHECK(read_until<wire::Subscribed>(client));
  CHECK(indices_to_the_end(client) == numbers(0, 10));
  CHECK(server.ask([](Server& s) { return s.absent().size(); }) == 0);
}

TEST_CASE("delivery: a client that waits for an absent feed is refused in the end, and told why") {
  TestServer server(sorted_feed(4), patient(std::chrono::milliseconds(1)));
  make_absent(server, ErrorCode::busy);
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_late());
  CHECK(reason(client) == kWhy);
  CHECK(refusal(client, ErrorCode::busy) == kWhy);
}

TEST_CASE("delivery: a client that cannot wait is refused at once") {
  auto grace = std::chrono::milliseconds(0);
  auto code = ErrorCode::store_unavailable;
  SUBCASE("no client is to wait") {}
  SUBCASE("waiting is no use") {
    grace = std::chrono::hours(1);
    code = ErrorCode::infeasible;
  }
  TestServer server(sorted_feed(4), patient(grace));
  make_absent(server, code);
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_late());
  CHECK(refusal(client, code) == kWhy);
}

TEST_CASE("delivery: an absent feed that is removed refuses those that wait for it") {
  TestServer server(sorted_feed(4), patient(std::chrono::hours(1)));
  make_absent(server, ErrorCode::store_unavailable);
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_late());
  CHECK(reason(client) == kWhy);
  server.ask([](Server& s) {
    s.remove_feed("late");
    return 0;
  });
  CHECK(refusal(client, ErrorCode::not_found).find("was removed") != std::string::npos);
}

TEST_CASE("delivery: a client that leaves or gives up does not come back with its feed") {
  TestServer server(sorted_feed(4), patient(std::chrono::hours(1)));
  make_absent(server, ErrorCode::store_unavailable);
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_late(1));
  client.send(subscribe_to_late(2));
  REQUIRE(reason(client) == kWhy);
  REQUIRE(reason(client) == kWhy);
  wire::UnsubscribeT unsubscribe;
  unsubscribe.subscription = 1;
  client.send(std::move(unsubscribe));
  RawClient gone(server.endpoint());
  gone.join(server.arena_socket());
  gone.send(subscribe_to_late());
  REQUIRE(reason(gone) == kWhy);
  gone.die();
  REQUIRE(server.eventually([](TestServer& s) { return s.sessions() == 1; }));
  make_present(server);
  const auto granted = read_until<wire::Subscribed>(client);
  REQUIRE(granted);
  CHECK(granted->as<wire::Subscribed>()->subscription() == 2);
  const FeedStatus late = server.status().feeds.back();
  CHECK(late.name == "late");
  CHECK(late.subscribers.size() == 1);
}

TEST_CASE("delivery: a feed whose data fail lets go of its arena, and its clients wait for it") {
  TestServer server(sorted_feed(4), patient(std::chrono::hours(1)), 3000);
  const auto left = [](Server& s) { return s.memory().left(); };
  RawClient client(server.endpoint());
  REQUIRE(join(client, server.arena_socket(), subscribe_to_train()));
  const auto held = next_ticket(client);
  REQUIRE(held);
  const std::uint64_t before = server.ask(left);
  std::filesystem::resize_file(server.dataset() / "data.mdb", 64 * 1024);
  client.send(release_of(*held));
  const wire::Refused* refused = nullptr;
  std::optional<ControlMessage> message;
  while (refused == nullptr) {  // what was assembled before the cut is delivered
    message = client.receive_news();
    REQUIRE(message);
    refused = message->as<wire::Refused>();
    const auto* ticket = message->as<wire::Delivery>();
    if (ticket != nullptr) client.send(release_of(unpacked(*ticket)));
  }
  CHECK(refused->code() == static_cast<std::uint16_t>(ErrorCode::disconnected));
  CHECK(server.ask([](Server& s) { return s.feeds().empty(); }));
  CHECK(server.ask([](Server& s) { return s.absent().at(0).name; }) == "train");
  CHECK(server.eventually([&](TestServer& s) { return s.ask(left) > before; }));
  client.send(subscribe_to_train());
  CHECK(reason(client).find("truncated") != std::string::npos);
}
