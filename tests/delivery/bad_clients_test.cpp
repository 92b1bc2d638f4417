// Clients that are out to harm, or out of their minds: each is a small matter for the daemon.

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/peer_limiter.h"
#include "daemon/stats/stats.h"
#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

int connect_to(const std::string& path) {
  const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  REQUIRE(::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return connection;
}

/// Whether the other side ends the connection within 10 s.
bool is_ended(int connection) {
  const timeval limit{10, 0};
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char byte = 0;
  return ::recv(connection, &byte, 1, 0) == 0;
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// What comes before the next Bye, which it takes away too.
std::vector<std::string> refusals_until_bye(RawClient& client) {
  std::vector<std::string> texts;
  while (auto message = client.receive_news()) {
    if (message->as<wire::Bye>() != nullptr) break;
    const auto* refused = message->as<wire::Refused>();
    if (refused != nullptr) texts.push_back(refused->message()->str());
  }
  return texts;
}

const std::string kTooMany = "too many rejected requests; this connection is no longer answered";

/// A healthy client still gets its epoch.
bool serves(TestServer& server) {
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_train());
  return indices_to_the_end(client) == numbers(0, 10);
}

}  // namespace

TEST_CASE("delivery: a flood of releases of leases that no client holds is counted, no more") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_train());
  // 3.2 MB: a connection that has more than 4 MiB on its way is closed.
  wire::ReleaseT release;
  release.subscription = 1;
  for (std::uint64_t lease = 0; lease < 40'000; ++lease) release.leases.push_back(lease << 32 | 7);
  for (int i = 0; i < 10; ++i) client.send(release);
  CHECK(serves(server));
  CHECK(server.eventually(
      [](TestServer& s) { return s.count(FeedCounter::releases_unknown) == 400'000; }));
}

TEST_CASE("delivery: a thousand subscriptions end the session that asks for them") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  for (std::uint32_t i = 1; i <= 1000; ++i) client.send(subscribe_to_train(i));
  const auto texts = refusals_until_bye(client);
  CHECK(texts.size() == PeerLimiter::kRefused + 1);  // as many again were waiting for their time
  CHECK(texts.back() == kTooMany);
  CHECK(server.eventually([](TestServer& s) { return s.sessions() == 0; }));
  client.die();
  CHECK(server.eventually([](TestServer& s) { return s.held_slots() == 0; }));
  CHECK(serves(server));
}

TEST_CASE("delivery: a client that asks for what is not there, and hears no answer, is dropped") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  auto subscribe = subscribe_to_train();
  subscribe.feed = "trian";
  for (int i = 0; i < 200; ++i) client.send(subscribe);
  const auto texts = refusals_until_bye(client);
  CHECK(texts.size() == PeerLimiter::kRefused + 1);
  CHECK(texts.front() == "no feed \"trian\"; this daemon serves: train");
  CHECK(texts.back() == kTooMany);
  CHECK(server.eventually([](TestServer& s) { return s.sessions() == 0; }));
}

TEST_CASE("delivery: Hello in a loop is answered 64 times") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  for (int i = 0; i < 200; ++i) client.send(hello);
  std::uint32_t welcomes = 0;
  std::string last;
  while (auto message = client.receive()) {
    if (message->as<wire::Welcome>() != nullptr) ++welcomes;
    if (message->as<wire::Refused>() != nullptr)
      last = message->as<wire::Refused>()->message()->str();
    if (message->as<wire::Bye>() != nullptr) break;
  }
  CHECK(welcomes == PeerLimiter::kRefused + 1);
  CHECK(last == kTooMany);
  CHECK(server.eventually([](TestServer& s) { return s.sessions() == 0; }));
  CHECK(serves(server));
}

TEST_CASE("delivery: a client that never says Hello right is heard 64 times") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  wire::HelloT hello;
  hello.protocol = 99;
  for (int i = 0; i < 100; ++i) client.send(hello);
  std::size_t refusals = 0;
  while (auto message = client.receive()) {
    const auto* refused = message->as<wire::Refused>();
    if (refused == nullptr) continue;
    ++refusals;
    if (refused->message()->str() == kTooMany) break;
  }
  CHECK(refusals == PeerLimiter::kRefused + 2);
}

TEST_CASE("delivery: a message of many frames is malformed, and costs nothing more") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  const std::vector<std::byte> frame(1000, std::byte{1});
  client.send_frames(500, frame);
  CHECK(refusal(client, ErrorCode::malformed_message) == "500 frames; a message has one");
  CHECK(serves(server));
}

TEST_CASE("delivery: a client that says nothing on the arena socket is dropped") {
  ServerSettings settings;
  settings.bind_time = std::chrono::milliseconds(50);
  TestServer server(sorted_feed(4), settings);
  const int connection = connect_to(server.arena_socket());
  CHECK(is_ended(connection));
  ::close(connection);
}

TEST_CASE("delivery: a session that never binds is dropped") {
  ServerSettings settings;
  settings.bind_time = std::chrono::milliseconds(50);
  TestServer server(sorted_feed(4), settings);
  RawClient client(server.endpoint());
  REQUIRE(client.hello() != 0);
  CHECK(server.eventually([](TestServer& s) { return s.sessions() == 0; }));
}

TEST_CASE("delivery: half an arena request, and gone, leaves nothing behind") {
  TestServer server(sorted_feed(4));
  REQUIRE(serves(server));
  const std::size_t before = open_descriptors();
  ArenaRequest request;
  request.session = 1;
  for (int i = 0; i < 200; ++i) {
    const int connection = connect_to(server.arena_socket());
    CHECK(::send(connection, &request, sizeof request / 2, MSG_NOSIGNAL) == sizeof request / 2);
    ::close(connection);
  }
  CHECK(server.eventually([&](TestServer&) { return open_descriptors() <= before; }));
  CHECK(serves(server));
}

TEST_CASE("delivery: a session without an arena cannot be bound by another, and so not ended") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  REQUIRE(client.hello(true) != 0);
  RawClient thief(server.endpoint());
  CHECK_FALSE(thief.attach(server.arena_socket(), client.session()));
  client.send(subscribe_to_train());
  CHECK(indices_to_the_end(client) == numbers(0, 10));
}

TEST_CASE("delivery: the log gets one line an interval, which counts the others") {
  const LogLimit::Clock::time_point start{};
  LogLimit limit(std::chrono::seconds(1));
  CHECK(limit.ask(start) == 0);
  CHECK_FALSE(limit.ask(start));
  CHECK_FALSE(limit.ask(start + std::chrono::milliseconds(999)));
  CHECK(limit.ask(start + std::chrono::milliseconds(1000)) == 2);
  CHECK(limit.ask(start + std::chrono::milliseconds(2999)) == 0);
  CHECK_FALSE(limit.ask(start + std::chrono::milliseconds(3000)));
}

TEST_CASE("delivery: what is worth a line each may come in bursts, and is paced after that") {
  const LogLimit::Clock::time_point start{};
  LogLimit limit(std::chrono::seconds(1), 3);
  for (int i = 0; i < 3; ++i) CHECK(limit.ask(start) == 0);
  CHECK_FALSE(limit.ask(start));
  CHECK(limit.ask(start + std::chrono::milliseconds(1500)) == 1);
  CHECK_FALSE(limit.ask(start + std::chrono::milliseconds(1999)));
  CHECK(limit.ask(start + std::chrono::milliseconds(2000)) == 1);
  for (int i = 0; i < 3; ++i) CHECK(limit.ask(start + std::chrono::seconds(60)) == 0);
  CHECK_FALSE(limit.ask(start + std::chrono::seconds(60)));
}

TEST_CASE("delivery: clients that come and go without end leave a line a second in the log") {
  for (const Event event : {Event::client_connected, Event::client_gone, Event::subscribed}) {
    EventLog log([] { return EventLog::Clock::time_point{}; });
    int lines = 0;
    for (int i = 0; i < 1000; ++i) lines += log.count(event) ? 1 : 0;
    CHECK(lines == 100);
    CHECK(log.get(event) == 1000);
  }
}

TEST_CASE("delivery: a program's name speaks to no one's terminal") {
  CHECK(program_name("train.py") == "train.py");
  CHECK(program_name("a\x1b]0;b\x07\x7f\n") == "a\\x1B]0;b\\x07\\x7F\\x0A");
  CHECK(program_name("caf\xC3\xA9 \xC2\x9b"
                     "1m") == "caf\xC3\xA9 \\x9B1m");
  CHECK(program_name(std::string(63, 'x') + "\xC3\xA9") == std::string(63, 'x') + "\xEF\xBF\xBD");
  CHECK(program_name(std::string(100, 'x')).size() == 64);
}

TEST_CASE("delivery: each message that a client sends has a handler, and no other") {
  for (const MessageKind& kind : message_kinds()) {
    CAPTURE(wire::EnumNameBody(kind.body));
    const bool clients = kind.sender == Sender::client || kind.sender == Sender::either;
    CHECK(Server::handles(kind.body) == clients);
  }
}

TEST_CASE("delivery: a client without such a subscription is told that nothing comes") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  wire::ListUpcomingT question;
  question.subscription = 5;
  question.question = 6;
  question.count = 3;
  client.send(std::move(question));
  const auto answer = client.receive();
  REQUIRE(answer);
  REQUIRE(answer->as<wire::Upcoming>() != nullptr);
  CHECK(answer->as<wire::Upcoming>()->question() == 6);
  CHECK(answer->as<wire::Upcoming>()->batches()->size() == 0);
}
