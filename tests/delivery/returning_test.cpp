// Clients that come back, and others that know their token.

#include <doctest/doctest.h>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

wire::HelloT with_token(std::uint16_t protocol = kProtocolVersion) {
  wire::HelloT hello;
  hello.protocol = protocol;
  hello.token = 77;
  return hello;
}

bool is_there(TestServer& server, const RawClient& client) {
  return server.has_session({client.session()});
}

}  // namespace

TEST_CASE("delivery: a token in a Hello that is refused ends no one's session") {
  ServerSettings settings;
  settings.endpoints = {"tcp://127.0.0.1:*"};
  const TemporaryFolder folder;
  settings.endpoints.push_back("ipc://" + (folder / "s").string());
  TestServer server(sorted_feed(4), settings);
  const std::string local = settings.endpoints[1];
  RawClient client(local);
  client.join((folder / "s.arena").string(), with_token());
  SUBCASE("of another version") {
    RawClient other(local);
    other.send(with_token(99));
    CHECK_FALSE(refusal(other, ErrorCode::unsupported_version).empty());
  }
  SUBCASE("from another transport") {
    RawClient other(server.endpoint(0));
    wire::HelloT hello = with_token();
    hello.inline_batches = true;
    other.send(std::move(hello));
    CHECK(refusal(other, ErrorCode::invalid_argument) ==
          "the token of this Hello is another client's");
  }
  CHECK(is_there(server, client));
  client.send(subscribe_to_train());
  CHECK(indices_to_the_end(client) == numbers(0, 10));
}

TEST_CASE("delivery: a client that comes back takes its own place among max_clients") {
  ServerSettings settings;
  settings.max_clients = 1;
  TestServer server(sorted_feed(4), settings);
  RawClient client(server.endpoint());
  client.join(server.arena_socket(), with_token());
  RawClient stranger(server.endpoint());
  CHECK(stranger.hello() == 0);
  RawClient again(server.endpoint());
  CHECK(again.hello(with_token()) != 0);
  CHECK_FALSE(is_there(server, client));
}
