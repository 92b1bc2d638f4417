#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <thread>

#include "tests/delivery/raw_client.h"
#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("delivery: a window is granted up to half of the slots") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 6;
  TestServer server(settings);
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  auto subscribe = subscribe_to_train();
  subscribe.window = UINT32_MAX;
  client.send(std::move(subscribe));
  const auto answer = client.receive();
  REQUIRE(answer->as<wire::Subscribed>() != nullptr);
  CHECK(answer->as<wire::Subscribed>()->window() == 3);
}

TEST_CASE("delivery: a job without a slot more than ranks here is refused, and not left waiting") {
  FeedSettings settings = sorted_feed(4, 4);
  settings.slots = 3;
  TestServer server(settings);
  const auto rank = [](std::uint32_t number, std::uint32_t of, std::uint32_t here = 0) {
    auto subscribe = subscribe_to_train();
    subscribe.ranks_here = here;
    subscribe.mode = wire::Mode::sharded;
    subscribe.rank = number;
    subscribe.ranks = of;
    return subscribe;
  };
  RawClient first(server.endpoint());
  RawClient second(server.endpoint());
  RawClient third(server.endpoint());
  REQUIRE(join(first, server.arena_socket(), rank(0, 4)));
  REQUIRE(join(second, server.arena_socket(), rank(1, 4)));
  third.join(server.arena_socket());
  third.send(rank(2, 4));
  CHECK(refusal(third, ErrorCode::does_not_fit) ==
        "rank 2 would be one of 3 ranks here, each of which holds a batch while it waits for the "
        "others, and feed train has 3 slots; set slots to 4 or more");
  // A rank that is here already, say of a job that is killed and started again, takes no slot more.
  third.send(rank(1, 4));
  CHECK(read_until<wire::Subscribed>(third));
  // A job that says how many there will be is refused at once; and so is another beside it.
  RawClient other(server.endpoint());
  other.join(server.arena_socket());
  other.send(rank(0, 4, 4));
  CHECK(refusal(other, ErrorCode::does_not_fit).ends_with("set slots to 8 or more"));
  other.send(rank(0, 4, 5));
  CHECK(refusal(other, ErrorCode::invalid_argument) == "5 ranks on this host of 4 in all");
}

TEST_CASE("delivery: what looks on at a job without a slot of its own is refused") {
  FeedSettings settings = sorted_feed(4, 2);
  settings.slots = 3;
  TestServer server(settings);
  auto rank = subscribe_to_train();
  rank.mode = wire::Mode::sharded;
  rank.ranks = 2;
  rank.ranks_here = 2;
  auto onlooker = std::make_unique<RawClient>(server.endpoint());
  REQUIRE(join(*onlooker, server.arena_socket(), subscribe_to_train()));
  RawClient first(server.endpoint());
  first.join(server.arena_socket());
  first.send(rank);
  CHECK(refusal(first, ErrorCode::does_not_fit) ==
        "rank 0 would be one of 2 ranks and 1 other client here, each of which holds a batch while "
        "it waits for the others, and feed train has 3 slots; set slots to 4 or more");
  onlooker.reset();
  CHECK(server.eventually([](TestServer& s) { return s.sessions() == 1; }));
  first.send(rank);
  REQUIRE(read_until<wire::Subscribed>(first));
  RawClient late(server.endpoint());
  late.join(server.arena_socket());
  late.send(subscribe_to_train());
  CHECK(refusal(late, ErrorCode::does_not_fit) ==
        "feed train has 3 slots, and the job that trains on it needs all of them; set slots to 4 "
        "or more, or have the batches sent as messages (inline)");
  RawClient messages(server.endpoint());
  REQUIRE(messages.hello(true) != 0);
  messages.send(subscribe_to_train());
  CHECK(read_until<wire::Subscribed>(messages));
}

TEST_CASE("delivery: poisoned slots do not disturb who still reads") {
  FeedSettings settings = sorted_feed(4);
  settings.poison = true;
  settings.slots = 2;
  TestServer server(settings);
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_train());
  CHECK(indices_to_the_end(client) == numbers(0, 10));
}

TEST_CASE("delivery: clients that stopped reading leave slots for the others") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 6;
  TestServer server(settings);
  std::vector<std::unique_ptr<RawClient>> stalled;
  for (const std::uint64_t step : std::array<std::uint64_t, 2>{0, 4}) {
    stalled.push_back(std::make_unique<RawClient>(server.endpoint()));
    stalled.back()->join(server.arena_socket());
    auto subscribe = subscribe_to_train();
    subscribe.step = step;
    stalled.back()->send(std::move(subscribe));
  }
  // All that the two may hold: a slot stays free for a newcomer, and one that goes round.
  CHECK(server.eventually([](TestServer& s) { return s.held_slots() == 4; }));
  RawClient reader(server.endpoint());
  reader.join(server.arena_socket());
  reader.send(subscribe_to_train());
  CHECK(indices_to_the_end(reader) == numbers(0, 10));
}

TEST_CASE("delivery: what is due to two who hold all they may is not assembled in turns") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 8;
  TestServer server(settings);
  RawClient full(server.endpoint());
  auto subscribe = subscribe_to_train();
  subscribe.window = 4;
  REQUIRE(join(full, server.arena_socket(), subscribe));
  for (int i = 0; i < 4; ++i) REQUIRE(read_until<wire::Delivery>(full));
  // The other is given two: one slot is kept for a newcomer, one goes round; they hold what is due.
  RawClient other(server.endpoint());
  subscribe.epoch = 1;
  REQUIRE(join(other, server.arena_socket(), subscribe));
  for (int i = 0; i < 2; ++i) REQUIRE(read_until<wire::Delivery>(other));
  const auto ask = [&other] {
    wire::AskT question;
    question.subscription = 1;
    other.send(std::move(question));
    return read_until<wire::Waiting>(other).has_value();
  };
  for (int i = 0; i < 200; ++i) REQUIRE(ask());
  CHECK(server.count(FeedCounter::batches_assembled) <= 8 + 7);
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

TEST_CASE("delivery: who looks on holds one batch, and more once it says that it waits") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send<wire::SubscribeT>(subscribe_to_train());
  REQUIRE(read_until<wire::Delivery>(client));
  RawClient other(server.endpoint());
  REQUIRE(join(other, server.arena_socket(), subscribe_to_train()));
  CHECK(indices_to_the_end(other) == numbers(0, 10));
  CHECK(client.silent());
  client.say_waiting(1, 1);
  CHECK(next_ticket(client)->index == 1);
}

TEST_CASE("delivery: the last slot is for a loop that waits with a batch in hand") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 2;
  TestServer server(settings);
  RawClient loop(server.endpoint());
  REQUIRE(join(loop, server.arena_socket(), subscribe_to_train()));
  auto held = next_ticket(loop);
  for (std::uint64_t i = 1; i < 10; ++i) {
    REQUIRE(held);
    loop.say_waiting(1, 1);
    const auto next = next_ticket(loop);
    REQUIRE(next);
    CHECK(next->index == i);
    loop.send(release_of(*held));
    held = next;
  }
}

TEST_CASE("delivery: who waits for other clients is told for whom, and so is the log") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 2;
  TestServer server(settings);
  RawClient first(server.endpoint());
  REQUIRE(join(first, server.arena_socket(), subscribe_to_train()));
  REQUIRE(next_ticket(first));
  RawClient second(server.endpoint());
  auto subscribe = subscribe_to_train();
  subscribe.epoch = 1;
  REQUIRE(join(second, server.arena_socket(), std::move(subscribe)));
  CHECK(server.eventually([](TestServer& s) {
    return s.ask([](const Server& at) { return at.log().get(Event::long_wait); }) != 0;
  }));
  wire::AskT question;
  question.subscription = 1;
  second.send(std::move(question));
  const auto answer = read_until<wire::Waiting>(second);
  REQUIRE(answer);
  const std::string reason = answer->as<wire::Waiting>()->reason()->str();
  CAPTURE(reason);
  CHECK(reason.find("raw (pid 0) holds 1 and has released none for ") != std::string::npos);
  CHECK(reason.ends_with("; with 3 slots all that are here could go on at once"));
}

TEST_CASE("delivery: the log names a client that waits, and none that is at work with its batch") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 2;
  TestServer server(settings);
  const auto arrive = [&server](RawClient& client, const char* name, std::uint64_t epoch) {
    wire::HelloT hello;
    hello.protocol = kProtocolVersion;
    hello.client = name;
    hello.abilities = kAbilities.bits();
    client.join(server.arena_socket(), std::move(hello));
    auto subscribe = subscribe_to_train();
    subscribe.epoch = epoch;
    client.send(std::move(subscribe));
    return read_until<wire::Subscribed>(client).has_value();
  };
  RawClient holds(server.endpoint());
  REQUIRE(arrive(holds, "holds", 0));
  REQUIRE(next_ticket(holds));
  RawClient works(server.endpoint());
  REQUIRE(arrive(works, "works", 0));
  REQUIRE(next_ticket(works));
  // The third one's batch would take the slot of either.
  RawClient waits(server.endpoint());
  REQUIRE(arrive(waits, "waits", 1));
  waits.say_waiting(1, 0);
  std::string told;
  CHECK(server.eventually([&told](TestServer& s) {
    told = s.ask([](const Server& at) {
      std::string lines;
      for (const LoggedEvent& each : at.log().latest()) {
        if (each.event == Event::long_wait) lines += each.text + "\n";
      }
      return lines;
    });
    return !told.empty();
  }));
  CHECK(told.find("feed train: waits (pid 0) has waited 1 s for a slot") == 0);
  CHECK(told.find("train: holds") == std::string::npos);
  CHECK(told.find("train: works") == std::string::npos);
}

TEST_CASE("delivery: slots ahead are those with batches that somebody will get") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 12;
  TestServer server(settings);
  const auto ahead = [](TestServer& s) { return s.feed().slots.ahead; };
  CHECK(server.eventually([&](TestServer& s) { return ahead(s) == 10; }));
  RawClient client(server.endpoint());
  auto subscribe = subscribe_to_train();
  subscribe.step = 7;
  REQUIRE(join(client, server.arena_socket(), std::move(subscribe)));
  CHECK(indices_to_the_end(client) == numbers(7, 10));
  CHECK(ahead(server) == 0);  // all ten are there, and nobody will get any
}
