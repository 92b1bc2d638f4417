#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

FeedSettings random_feed() {
  FeedSettings settings = sorted_feed(4);
  settings.plan.order = Order::random;
  return settings;
}

}  // namespace

TEST_CASE("delivery: the largest batches come first, and then the epoch from its start") {
  TestServer server(random_feed());
  RawClient client(server.endpoint());
  auto subscribe = subscribe_to_train();
  subscribe.worst_first = 3;
  subscribe.window = 1;
  REQUIRE(join(client, server.arena_socket(), std::move(subscribe)));
  std::map<std::uint64_t, std::uint64_t> sizes;
  std::vector<std::uint64_t> rehearsed;
  std::vector<std::uint64_t> order;
  for (int i = 0; i < 13; ++i) {
    const auto ticket = next_ticket(client);
    REQUIRE(ticket);
    CHECK(ticket->rehearsal == (i < 3));
    (ticket->rehearsal ? rehearsed : order).push_back(ticket->index);
    if (!ticket->rehearsal) sizes[ticket->index] = ticket->size;
    client.send(release_of(*ticket));
  }
  for (std::uint64_t i = 0; i < 10; ++i) CHECK(order[i] == i);
  REQUIRE(rehearsed.size() == 3);
  CHECK(sizes[rehearsed[0]] >= sizes[rehearsed[1]]);
  CHECK(sizes[rehearsed[1]] >= sizes[rehearsed[2]]);
  for (const auto& [index, size] : sizes) {
    const bool was = std::count(rehearsed.begin(), rehearsed.end(), index) > 0;
    if (!was) CHECK(size <= sizes[rehearsed[2]]);
  }
}

TEST_CASE("delivery: more rehearsals than are kept are refused") {
  TestServer server(random_feed());
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  auto subscribe = subscribe_to_train();
  subscribe.worst_first = 17;
  client.send(std::move(subscribe));
  const auto answer = client.receive();
  REQUIRE(answer);
  REQUIRE(answer->as<wire::Refused>() != nullptr);
  CHECK(answer->as<wire::Refused>()->message()->str() ==
        "worst_first of 17 batches; allowed: 0 to 16");
}

TEST_CASE("delivery: the ledger tells each sequence's way before its ticket is sent") {
  const TemporaryFolder folder;
  FeedSettings settings = sorted_feed(4);
  settings.ledger = folder / "ledger";
  TestServer server(settings);
  RawClient client(server.endpoint());
  REQUIRE(join(client, server.arena_socket(), subscribe_to_train()));
  CHECK(indices_to_the_end(client).size() == 10);
  // Of a release nothing waits for its record.
  CHECK(server.eventually([&folder](TestServer&) {
    std::ifstream written(folder / "ledger");
    return std::count(std::istreambuf_iterator<char>(written), {}, '\n') >= 20;
  }));
  std::map<std::uint64_t, int> seen;
  std::map<std::string, int> events;
  std::ifstream file(folder / "ledger");
  for (std::string line; std::getline(file, line);) {
    const auto entry = boost::json::parse(line).as_object();
    ++events[std::string(entry.at("event").as_string())];
    if (entry.at("event").as_string() != "delivered") continue;
    CHECK(entry.at("index") == entry.at("step"));
    for (const auto& ordinal : entry.at("ordinals").as_array()) {
      ++seen[ordinal.to_number<std::uint64_t>()];
    }
  }
  CHECK(seen.size() == 40);
  for (const auto& [ordinal, times] : seen) CHECK(times == 1);
  CHECK(events["delivered"] == 10);
  CHECK(events["released"] == 10);
}

TEST_CASE("delivery: the ledger goes on after a line that a kill has cut off") {
  const TemporaryFolder folder;
  FeedSettings settings = sorted_feed(4);
  settings.ledger = folder / "ledger";
  std::ofstream(folder / "ledger") << "{\"event\":\"deliv";
  TestServer server(settings);
  RawClient client(server.endpoint());
  REQUIRE(join(client, server.arena_socket(), subscribe_to_train()));
  CHECK(indices_to_the_end(client).size() == 10);
  std::ifstream file(folder / "ledger");
  std::string line;
  std::getline(file, line);
  CHECK(line == "{\"event\":\"deliv");
  std::getline(file, line);
  CHECK(boost::json::parse(line).at("event") == "delivered");
}

TEST_CASE("delivery: a journal or a ledger that cannot be written stops the feed at its start") {
  for (const bool journal : {true, false}) {
    FeedSettings settings = sorted_feed(4);
    (journal ? settings.journal : settings.ledger) = "/nowhere/at/all";
    std::string message;
    try {
      const TestServer server(settings);
    } catch (const std::exception& error) {
      message = error.what();
    }
    CHECK(message.find("/nowhere/at/all") != std::string::npos);
    CHECK(message.find("No such file") != std::string::npos);
  }
}
