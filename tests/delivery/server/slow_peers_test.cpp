// Remote clients behind a link that is slow or stands still.

#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "daemon/delivery/pulse.h"
#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"
#include "tests/support/slow_proxy.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMebi = std::size_t{1} << 20;

ServerSettings impatient(std::chrono::milliseconds silence) {
  ServerSettings settings;
  settings.endpoints = {"tcp://127.0.0.1:0"};
  settings.silence = silence;
  return settings;
}

/// Four batches of up to 3 MiB, or two of up to 6 MiB.
FeedSettings large_feed(std::uint32_t size) {
  FeedSettings settings = sorted_feed(size);
  settings.slots = 6;
  return settings;
}
constexpr std::size_t kSequences = 16'000;

wire::HelloT remote_hello(Abilities abilities) {
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  hello.client = "raw";
  hello.inline_batches = true;
  hello.abilities = abilities.bits();
  return hello;
}

wire::SubscribeT in_a_queue() {
  auto subscribe = subscribe_to_train();
  subscribe.mode = wire::Mode::queue;
  subscribe.epochs = 1;
  subscribe.window = 3;
  return subscribe;
}

}  // namespace

TEST_CASE("delivery: a batch arrives that needs longer over a slow link than silence may last") {
  TestServer server(large_feed(8'000), impatient(1s), kSequences);
  for (const Abilities abilities : {Abilities{}, Abilities{Ability::parts}}) {
    SlowProxy link(server.endpoint(0), 2 * kMebi);
    RawClient client(link.endpoint());
    REQUIRE(client.hello(remote_hello(abilities)) != 0);
    auto subscribe = subscribe_to_train();
    subscribe.window = 1;
    client.send(subscribe);
    REQUIRE(read_until<wire::Subscribed>(client));
    std::size_t largest = 0;
    for (std::uint64_t index = 0; index < 2; ++index) {
      const auto message = read_until<wire::Delivery>(client);
      REQUIRE(message);
      const auto ticket = unpacked(*message->as<wire::Delivery>());
      CHECK(ticket.index == index);
      CHECK(ticket.size == client.batch().size());
      CHECK(client.batch_frames() ==
            (abilities == Abilities{} || ticket.size <= 4 * kMebi ? 1 : ticket.size / kMebi + 1));
      largest = std::max(largest, client.batch().size());
      client.send(release_of(ticket));
    }
    CHECK(largest > 5 * kMebi);
    CHECK(link.connections() == 1);
  }
}

TEST_CASE("delivery: a frozen worker is given up, whatever is on its way, and others go on") {
  constexpr auto kSilence = 1s;
  // Its batches are kept for it from when it is lost, for queue_grace and no longer.
  for (const std::chrono::milliseconds grace : {0ms, 2'000ms}) {
    CAPTURE(grace.count());
    const TemporaryFolder folder;
    FeedSettings settings = large_feed(4'000);
    settings.journal = folder / "journal";
    settings.queue_grace = grace;
    TestServer server(settings, impatient(kSilence), kSequences);
    SlowProxy link(server.endpoint(0), 0);
    RawClient frozen(link.endpoint());
    REQUIRE(frozen.hello(remote_hello({})) != 0);
    frozen.send(in_a_queue());
    REQUIRE(read_until<wire::Subscribed>(frozen));
    const auto stopped = std::chrono::steady_clock::now();
    link.freeze();
    // Before another worker can take them all.
    REQUIRE(server.eventually([](TestServer& s) { return s.held_slots() > 0; }));
    RawClient other(server.endpoint(0));
    REQUIRE(other.hello(remote_hello({})) != 0);
    other.send(in_a_queue());
    CHECK(indices_to_the_end(other).size() == 4);
    const auto waited = std::chrono::steady_clock::now() - stopped;
    CHECK(waited >= kSilence + grace - 100ms);
    CHECK(waited < FeedSettings{}.queue_grace);
    CHECK(server.eventually([](TestServer& s) { return s.sessions() == 1; }));
    CHECK(server.eventually([](TestServer& s) { return s.held_slots() == 0; }));
  }
}

TEST_CASE("delivery: a client that computes for long with batches in its hands is not lost") {
  // As long as a full machine may keep a thread from answering.
  TestServer server(sorted_feed(4), impatient(3s));
  RawClient client(server.endpoint(0));
  REQUIRE(client.hello(true) != 0);
  client.send(subscribe_to_train());
  REQUIRE(read_until<wire::Delivery>(client));
  for (int second = 0; second < 7; ++second) REQUIRE(read_until<wire::Alive>(client));
  CHECK(server.sessions() == 1);
}

TEST_CASE("delivery: a client's pulse is what it says, and what leaves for it in earnest") {
  const Pulse::Time begin{1000s};
  constexpr auto kLimit = 10'000ms;
  Pulse pulse(begin);
  CHECK_FALSE(pulse.lost({100, 10, false}, begin + 1s, kLimit));
  CHECK_FALSE(pulse.lost({100, 20, false}, begin + 9s, kLimit));    // it answers
  CHECK_FALSE(pulse.lost({8'000, 20, true}, begin + 18s, kLimit));  // a batch flows
  CHECK_FALSE(pulse.lost({16'000, 20, true}, begin + 27s, kLimit));
  CHECK_FALSE(pulse.lost({16'500, 20, false}, begin + 36s, kLimit));
  // Its kernel takes our signs of life, but the client never answers.
  CHECK(pulse.lost({17'000, 20, false}, begin + 37s, kLimit) == "no sign of life for 10 s");
}

TEST_CASE("delivery: a client that talks and does not read is lost") {
  const Pulse::Time begin{1000s};
  Pulse pulse(begin);
  CHECK_FALSE(pulse.lost({50'000, 10, true}, begin + 1s, 1500ms));
  CHECK_FALSE(pulse.lost({50'000, 20, true}, begin + 2s, 1500ms));
  CHECK(pulse.lost({50'000, 30, true}, begin + 3s, 1500ms) ==
        "bytes are on their way to it, and none of them has left for 1.5 s");
}
