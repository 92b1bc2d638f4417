#include <doctest/doctest.h>

#include "daemon/http/http.h"

using namespace batchwright;

TEST_CASE("http: addresses to listen on") {
  const auto v4 = parse_listen_address("127.0.0.1:9477");
  REQUIRE(v4);
  CHECK(v4->host == "127.0.0.1");
  CHECK(v4->port == 9477);
  CHECK(v4->loopback);
  const auto v6 = parse_listen_address("[::1]:0");
  REQUIRE(v6);
  CHECK(v6->host == "::1");
  CHECK(v6->port == 0);
  CHECK(v6->loopback);
  CHECK_FALSE(parse_listen_address("0.0.0.0:80")->loopback);
  CHECK_FALSE(parse_listen_address("[::]:80")->loopback);
}

TEST_CASE("http: what is no address is refused with what is allowed") {
  for (const char* text : {"", ":", ":9477", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
                           "127.0.0.1:-1", "127.0.0.1:80x", "localhost:9477", "::1:9477",
                           "[127.0.0.1]:80", "[::1]", "[]:80", "1.2.3:80", " 127.0.0.1:80"}) {
    CAPTURE(text);
    const auto parsed = parse_listen_address(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == ErrorCode::bad_configuration);
  }
  CHECK(parse_listen_address("localhost:1").error().message ==
        "found \"localhost:1\"; allowed: a numeric address and a port, such as 127.0.0.1:9477 or "
        "[::1]:9477");
}
