#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <set>

#include "tests/delivery/raw_client.h"
#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("delivery: Hello is answered by Welcome with the feeds and their fields") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  client.send(std::move(hello));
  const auto message = client.receive();
  REQUIRE(message);
  const auto* welcome = message->as<wire::Welcome>();
  REQUIRE(welcome != nullptr);
  CHECK(welcome->session() != 0);
  CHECK(welcome->arena_socket()->str() == server.arena_socket());
  REQUIRE(welcome->feeds()->size() == 1);
  CHECK(welcome->feeds()->Get(0)->name()->str() == "train");
  CHECK(welcome->feeds()->Get(0)->sequences() == 40);
  CHECK(welcome->feeds()->Get(0)->fields()->Get(1)->name()->str() == "label");
}

TEST_CASE("delivery: abilities are used where both name them, and older clients go on without") {
  for (const Abilities named : {Abilities(), kAbilities, Abilities(~std::uint64_t{0})}) {
    TestServer server(sorted_feed(4));
    RawClient client(server.endpoint());
    wire::HelloT hello;
    hello.protocol = kProtocolVersion;
    hello.abilities = named.bits();
    client.send(std::move(hello));
    const auto message = client.receive();
    REQUIRE(message);
    REQUIRE(message->as<wire::Welcome>() != nullptr);
    CHECK(message->as<wire::Welcome>()->abilities() == kAbilities.bits());
    CHECK(server.status().sessions.at(0).abilities == (named & kAbilities));
  }
}

TEST_CASE("delivery: a client of another protocol version is told both versions") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  wire::HelloT hello;
  hello.protocol = 99;
  client.send(std::move(hello));
  const std::string text = refusal(client, ErrorCode::unsupported_version);
  CHECK(text == "the client speaks protocol 99, this daemon (test) speaks 1");
  const auto bye = client.receive();
  REQUIRE(bye);
  CHECK(bye->as<wire::Bye>() != nullptr);
}

TEST_CASE("delivery: random bytes are refused, and the third time the session ends") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  const std::vector<std::byte> noise(333, std::byte{0xA5});
  for (int i = 0; i < 3; ++i) {
    client.send_bytes(noise);
    CHECK(refusal(client, ErrorCode::malformed_message) == "333 bytes that are no control message");
  }
  CHECK(client.receive()->as<wire::Bye>() != nullptr);
  CHECK(server.eventually([](TestServer& s) { return s.sessions() == 0; }));
  CHECK(server.ask([](const Server& s) { return s.log().get(Event::malformed_message); }) == 3);
}

TEST_CASE("delivery: what a client must not say gets a refusal that says why") {
  TestServer server(sorted_feed(4, 4));
  RawClient client(server.endpoint());
  SUBCASE("before Hello") {
    client.send(subscribe_to_train());
    CHECK(refusal(client, ErrorCode::disconnected) == "no session: Hello comes first");
  }
  SUBCASE("before the arena socket") {
    REQUIRE(client.hello() != 0);
    client.send(subscribe_to_train());
    CHECK(refusal(client, ErrorCode::invalid_argument) == "connect to the arena socket first");
  }
  SUBCASE("unknown feed") {
    client.join(server.arena_socket());
    auto subscribe = subscribe_to_train();
    subscribe.feed = "trian";
    client.send(std::move(subscribe));
    CHECK(refusal(client, ErrorCode::not_found) == "no feed \"trian\"; this daemon serves: train");
  }
  SUBCASE("rank not below ranks") {
    client.join(server.arena_socket());
    auto subscribe = subscribe_to_train();
    subscribe.mode = wire::Mode::sharded;
    subscribe.rank = 2;
    subscribe.ranks = 2;
    client.send(std::move(subscribe));
    CHECK(refusal(client, ErrorCode::invalid_argument) ==
          "rank 2 of 2 ranks: a rank is below the number of ranks");
  }
  SUBCASE("ranks that do not divide world") {
    client.join(server.arena_socket());
    auto subscribe = subscribe_to_train();
    subscribe.mode = wire::Mode::sharded;
    subscribe.ranks = 3;
    client.send(std::move(subscribe));
    CHECK(refusal(client, ErrorCode::invalid_argument) ==
          "3 ranks do not divide the feed's world of 4");
  }
  SUBCASE("a step past the epoch's end") {
    client.join(server.arena_socket());
    auto subscribe = subscribe_to_train();
    subscribe.step = 1000;
    client.send(std::move(subscribe));
    CHECK(refusal(client, ErrorCode::invalid_argument) ==
          "step 1000 of epoch 0, which has 2 steps");
  }
  SUBCASE("another fingerprint") {
    client.join(server.arena_socket());
    auto subscribe = subscribe_to_train();
    subscribe.expects_fingerprint = true;
    auto other = *server.feed().fingerprint;
    other.seed = 5;
    subscribe.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(other));
    client.send(std::move(subscribe));
    const std::string text = refusal(client, ErrorCode::fingerprint_mismatch);
    CHECK(text.find("seed changed (expected " + to_string(other)) != std::string::npos);
  }
  SUBCASE("a number that is taken") {
    client.join(server.arena_socket());
    client.send(subscribe_to_train());
    CHECK(client.receive()->as<wire::Subscribed>() != nullptr);
    client.send(subscribe_to_train());
    while (auto message = client.receive()) {
      const auto* refused = message->as<wire::Refused>();
      if (refused == nullptr) continue;
      CHECK(refused->message()->str() == "subscription 1 is taken");
      break;
    }
  }
  SUBCASE("a window of 0") {
    client.join(server.arena_socket());
    auto subscribe = subscribe_to_train();
    subscribe.window = 0;
    client.send(std::move(subscribe));
    CHECK(refusal(client, ErrorCode::invalid_argument) ==
          "a window of 0 batches; allowed: 1 and up");
  }
}

TEST_CASE("delivery: an epoch comes in order, whole, and ends with EpochEnd") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_train());
  const auto answer = client.receive();
  REQUIRE(answer);
  const auto* subscribed = answer->as<wire::Subscribed>();
  REQUIRE(subscribed != nullptr);
  CHECK(subscribed->steps() == 10);
  CHECK(indices_to_the_end(client) == numbers(0, 10));
  CHECK(server.eventually([](TestServer& s) { return s.held_slots() == 0; }));
}

TEST_CASE("delivery: no more than a window of batches is out unreleased") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  auto subscribe = subscribe_to_train();
  subscribe.window = 3;
  client.send(std::move(subscribe));
  REQUIRE(client.receive()->as<wire::Subscribed>() != nullptr);
  auto first = client.receive();
  REQUIRE(first->as<wire::Delivery>() != nullptr);
  client.receive();
  client.receive();
  // All ten batches are assembled and have slots; the window alone holds them back.
  CHECK(server.eventually(
      [](TestServer& s) { return s.count(FeedCounter::batches_assembled) == 10; }));
  CHECK(client.silent());
  client.send(release_of(unpacked(*first->as<wire::Delivery>())));
  const auto next = client.receive();
  REQUIRE(next->as<wire::Delivery>() != nullptr);
  CHECK(next->as<wire::Delivery>()->index() == 3);
}

TEST_CASE("delivery: replicas in step share every batch") {
  FeedSettings settings = sorted_feed(4);
  TestServer server(settings);
  RawClient a(server.endpoint());
  RawClient b(server.endpoint());
  a.join(server.arena_socket());
  b.join(server.arena_socket());
  a.send(subscribe_to_train());
  b.send(subscribe_to_train());
  CHECK(indices_to_the_end(a) == numbers(0, 10));
  CHECK(indices_to_the_end(b) == numbers(0, 10));
  CHECK(server.count(FeedCounter::batches_delivered) == 20);
  CHECK(server.count(FeedCounter::batches_shared) == 10);
  CHECK(server.count(FeedCounter::batches_assembled) == 10);
}

TEST_CASE("delivery: the ranks of a world get equal steps and no batch twice") {
  TestServer server(sorted_feed(4, 4));
  std::set<std::uint64_t> all;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    RawClient client(server.endpoint());
    client.join(server.arena_socket());
    auto subscribe = subscribe_to_train();
    subscribe.mode = wire::Mode::sharded;
    subscribe.rank = rank;
    subscribe.ranks = 2;
    client.send(std::move(subscribe));
    const auto indices = indices_to_the_end(client);
    // Ten batches make two steps of four; the last two batches are dropped.
    CHECK(indices == (rank == 0 ? std::vector<std::uint64_t>{0, 1, 4, 5}
                                : std::vector<std::uint64_t>{2, 3, 6, 7}));
    all.insert(indices.begin(), indices.end());
  }
  CHECK(all.size() == 8);
}

TEST_CASE("delivery: a subscription starts at the position it names") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  auto subscribe = subscribe_to_train();
  subscribe.epoch = 7;
  subscribe.step = 6;
  subscribe.epochs = 2;
  client.send(std::move(subscribe));
  auto expected = numbers(6, 10);
  for (const std::uint64_t index : numbers(0, 10)) expected.push_back(index);
  CHECK(indices_to_the_end(client) == expected);
}

TEST_CASE("delivery: a client that dies gives everything back") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_train());
  CHECK(server.eventually([](TestServer& s) { return s.held_slots() == 4; }));
  client.die();
  CHECK(server.eventually([](TestServer& s) { return s.held_slots() == 0; }));
  CHECK(server.sessions() == 0);
}

TEST_CASE("delivery: a lease that is not held is counted and ignored") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_train());
  wire::ReleaseT release;
  release.subscription = 1;
  release.leases = {999, 1000, 999};
  client.send(std::move(release));
  CHECK(
      server.eventually([](TestServer& s) { return s.count(FeedCounter::releases_unknown) == 3; }));
  REQUIRE(client.receive()->as<wire::Subscribed>() != nullptr);
  CHECK(indices_to_the_end(client) == numbers(0, 10));
}

TEST_CASE("delivery: a session cannot be bound twice, nor one that is not there") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  RawClient thief(server.endpoint());
  CHECK_FALSE(thief.attach(server.arena_socket(), client.session()));
  RawClient guess(server.endpoint());
  CHECK_FALSE(guess.attach(server.arena_socket(), 12345));
}

TEST_CASE("delivery: the arena can be mapped to read, and in no other way") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_train());
  REQUIRE(client.receive()->as<wire::Subscribed>() != nullptr);
  const auto message = client.receive();
  const auto* ticket = message->as<wire::Delivery>();
  REQUIRE(ticket != nullptr);
  std::uint64_t bytes = 0;
  const int descriptor = client.arena(ticket->arena(), client.session(), bytes);
  REQUIRE(descriptor >= 0);
  CHECK(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) == MAP_FAILED);
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  REQUIRE(map != MAP_FAILED);
  ::close(descriptor);
  const auto batch = verify_batch(
      {static_cast<const std::byte*>(map) + ticket->offset(), std::size_t{ticket->size()}});
  REQUIRE(batch);
  // Sorted order begins with the longest sequence.
  CHECK((*batch)->batch_length() == 50);
  const auto ordinal = (*batch)->ordinals()->Get(0);
  CHECK((*batch)->lengths()->Get(0) == server.lengths()[ordinal]);
  float value = 0;
  std::memcpy(&value, (*batch)->tensors()->Get(0)->data()->data() + 16 * 3 + 8, sizeof value);
  CHECK(value == small_value(ordinal, 3, 2));
  ::munmap(map, bytes);
}

TEST_CASE("delivery: a regular file in the socket's way is left alone") {
  TemporaryFolder folder;
  const std::string path = folder / "s.arena";
  std::ofstream(path) << "precious";
  boost::asio::io_context loop;
  const auto listening = ArenaSocket::listen(loop, path, {8}, {});
  REQUIRE_FALSE(listening);
  CHECK(listening.error().code == ErrorCode::already_exists);
  CHECK(std::filesystem::file_size(path) == 8);
}

TEST_CASE("delivery: a status without clients adds up what the lines of clients say") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  REQUIRE(join(client, server.arena_socket(), subscribe_to_train()));
  REQUIRE(read_until<wire::Delivery>(client));
  const auto [all, few] = server.ask([](const Server& s) {
    const auto now = std::chrono::steady_clock::now();
    return std::pair(s.status(now), s.status(now, Detail::without_clients));
  });
  REQUIRE(all.feeds.size() == 1);
  REQUIRE(few.feeds.size() == 1);
  CHECK(all.sessions.size() == 1);
  CHECK(few.sessions.empty());
  CHECK(all.feeds[0].subscribers.size() == 1);
  CHECK(few.feeds[0].subscribers.empty());
  CHECK(few.feeds[0].active == 1);
  CHECK(few.feeds[0].waited.daemon == all.feeds[0].waited.daemon);
  CHECK(few.feeds[0].slots.held == all.feeds[0].slots.held);
}
