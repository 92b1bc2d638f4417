#include "daemon/delivery/wire/access.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

ServerSettings allowing(std::set<uid_t> uids, std::set<gid_t> gids) {
  ServerSettings settings;
  settings.allowed = {std::move(uids), std::move(gids)};
  return settings;
}

/// What those say that should listen at these addresses.
std::string listen_error(const std::string& endpoint, const std::string& events = "") {
  boost::asio::io_context loop;
  EventLog log;
  ListenerSettings settings;
  settings.endpoints = {endpoint};
  settings.events = events;
  Listeners listeners(loop, log, std::move(settings), {});
  const auto listening = listeners.open();
  return listening ? "" : listening.error().message;
}

}  // namespace

TEST_CASE("delivery: a peer's identity stands at the end of its address") {
  const auto found = credentials_of("host:1000:50:4711");
  REQUIRE(found);
  CHECK(found->uid == 1000);
  CHECK(found->gid == 50);
  CHECK(credentials_of("a:b:1:2:3")->uid == 1);
  for (const char* address : {"", "host", "host:1:2", "1:2:3", "host:1:2:", "host::2:3",
                              "host:-1:2:3", "host:1:2:x", "host:99999999999:2:3"}) {
    CAPTURE(address);
    CHECK_FALSE(credentials_of(std::string_view(address)));
  }
}

TEST_CASE("delivery: a user or a group on the list is let in, all are without a list") {
  const PeerCredentials peer{1000, 50};
  CHECK(AllowList{}.check(peer));
  CHECK(AllowList{}.check(std::nullopt));
  CHECK(AllowList{{1000}, {}}.check(peer));
  CHECK(AllowList{{1}, {50}}.check(peer));
  CHECK_FALSE(AllowList{{1}, {1000}}.check(peer));
  CHECK(AllowList{{1, 2}, {3}}.check(peer).error().message ==
        "uid 1000, gid 50 is not allowed to be a client; allowed: uids [1 2], gids [3]");
  CHECK(AllowList{{1}, {}}.check(std::nullopt).error().message ==
        "an unknown user is not allowed to be a client; allowed: uids [1], gids []");
}

TEST_CASE("delivery: a process of an allowed user gets its epoch") {
  TestServer server(sorted_feed(4), allowing({::getuid()}, {}));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(subscribe_to_train());
  CHECK(indices_to_the_end(client) == numbers(0, 10));
}

TEST_CASE("delivery: a process of another user is refused, with or without an arena") {
  TestServer server(sorted_feed(4), allowing({::getuid() + 1}, {::getgid() + 1}));
  for (const bool inline_batches : {false, true}) {
    RawClient client(server.endpoint());
    wire::HelloT hello;
    hello.protocol = kProtocolVersion;
    hello.inline_batches = inline_batches;
    client.send(std::move(hello));
    const std::string text = refusal(client, ErrorCode::invalid_argument);
    CHECK(text == "uid " + std::to_string(::getuid()) + ", gid " + std::to_string(::getgid()) +
                      " is not allowed to be a client; allowed: uids [" +
                      std::to_string(::getuid() + 1) + "], gids [" +
                      std::to_string(::getgid() + 1) + "]");
    CHECK(client.receive()->as<wire::Bye>() != nullptr);
  }
  RawClient client(server.endpoint());
  CHECK_FALSE(client.attach(server.arena_socket(), 1));
  CHECK(server.sessions() == 0);
}

TEST_CASE("delivery: one client too many is told the limit") {
  ServerSettings settings;
  settings.max_clients = 1;
  TestServer server(sorted_feed(4), settings);
  RawClient first(server.endpoint());
  first.join(server.arena_socket());
  RawClient second(server.endpoint());
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  second.send(std::move(hello));
  CHECK(refusal(second, ErrorCode::does_not_fit) ==
        "1 clients are connected, no more are allowed (max_clients)");
}

TEST_CASE("delivery: a path that no socket can have is refused by name") {
  TemporaryFolder folder;
  const std::string long_path = (folder / std::string(100, 'x')).string();
  CHECK(listen_error("ipc://" + long_path) ==
        long_path + ": a socket's path has at most 107 bytes, found " +
            std::to_string(long_path.size()));
  CHECK(listen_error("ipc:///nonexistent/s") ==
        "/nonexistent/s: the folder /nonexistent does not exist; make it, or name another");
  std::ofstream(folder / "file") << "x";
  const std::string below = (folder / "file/s").string();
  CHECK(listen_error("ipc://" + below) ==
        below + ": " + std::filesystem::path(below).parent_path().string() + " is no folder");
  CHECK(listen_error("udp://127.0.0.1:1") == "udp://127.0.0.1:1: allowed: ipc:// or tcp://");
}

TEST_CASE("delivery: a file in the way of the endpoint or of events is left alone") {
  TemporaryFolder folder;
  const std::string path = folder / "s";
  std::ofstream(path) << "precious";
  CHECK(listen_error("ipc://" + path) == path + ": a file that is no socket is in the way");
  const std::string other = folder / "t";
  CHECK(listen_error("ipc://" + other, "ipc://" + path) ==
        path + ": a file that is no socket is in the way");
  CHECK(std::filesystem::file_size(path) == 8);
}
