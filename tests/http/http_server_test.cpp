#include "tests/http/served_http.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("http: a page comes with its type and length") {
  Served served;
  served.page = "{\"a\":1}";
  const std::string answer = served.answer(get_once("/stats"));
  CHECK(starts(answer, "200 OK\r\n"));
  CHECK(answer.find("Content-Type: application/json\r\n") != std::string::npos);
  CHECK(answer.find("Content-Length: 7\r\n") != std::string::npos);
  CHECK(answer.ends_with("\r\n\r\n{\"a\":1}"));
}

TEST_CASE("http: a page larger than any buffer comes whole") {
  Served served;
  served.page = std::string(8 << 20, 'x');
  const std::string answer = served.answer(get_once("/stats"));
  CHECK(answer.ends_with("\r\n\r\n" + served.page));
}

TEST_CASE("http: a query is no part of the path") {
  Served served;
  CHECK(starts(served.answer(get_once("/healthz?a=b")), "200"));
}

TEST_CASE("http: an unknown path is answered with those that are known") {
  Served served;
  const std::string answer = served.answer(get_once("/metricss"));
  CHECK(starts(answer, "404"));
  CHECK(answer.ends_with(
      "no such page; available: /broken /healthz /stats /live /feeds/NAME/plan\n"));
}

TEST_CASE("http: other methods are refused, with and without a body") {
  Served served;
  for (const char* method : {"POST", "PUT", "DELETE", "BREW"}) {
    CAPTURE(method);
    const std::string line = std::string(method) + " /stats HTTP/1.1\r\n";
    const std::string answer = served.answer(line + "\r\n");
    CHECK(starts(answer, "405"));
    CHECK(answer.find("Allow: GET, HEAD\r\n") != std::string::npos);
    CHECK(starts(served.answer(line + "Content-Length: 3\r\n\r\nabc"), "405"));
  }
}

TEST_CASE("http: a body is refused") {
  Served served;
  CHECK(starts(served.answer(get("/stats", "Content-Length: 3\r\n") + "abc"), "413"));
  CHECK(starts(served.answer(get("/stats", "Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\n"),
               "413"));
}

TEST_CASE("http: what is no HTTP is answered with 400") {
  Served served;
  for (const char* text : {"hello\r\n\r\n", "GET /stats\r\n\r\n", "GET /stats HTTP/9.9\r\n\r\n",
                           "GET /stats HTTP/1.1\r\nno colon\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n",
                           "GET /stats HTTP/1.1\r\nContent-Length: many\r\n\r\n"}) {
    CAPTURE(text);
    CHECK(starts(served.answer(text), "400"));
  }
}

TEST_CASE("http: a header above 8 KiB is refused, one below is served") {
  Served served;
  const std::string padding(7000, 'x');
  CHECK(starts(served.answer(get("/stats", "Connection: close\r\nX: " + padding + "\r\n")), "200"));
  CHECK(starts(served.answer(get("/stats", "X: " + padding + padding + "\r\n")), "431"));
  // Endless: the answer comes although the request has not ended.
  CHECK(starts(served.answer(get("/stats", std::string(1 << 20, 'y'))), "431"));
}

TEST_CASE("http: a page that cannot be made is 500, and the endpoint goes on") {
  Served served;
  CHECK(starts(served.answer(get_once("/broken")), "500"));
  CHECK(starts(served.answer(get_once("/healthz")), "200"));
}

TEST_CASE("http: a connection serves one request after the other") {
  Served served;
  Peer peer(served.loop, served.port());
  peer.send(get("/healthz"));
  REQUIRE(served.run_until([&] { return peer.count("ok\n") == 1; }));
  peer.send(get("/healthz") + get("/stats") + get("/healthz"));
  REQUIRE(served.run_until([&] { return peer.count("ok\n") == 3; }));
  CHECK(peer.count("HTTP/1.1 200 OK\r\n") == 4);
  CHECK_FALSE(peer.closed());
}

TEST_CASE("http: an HTTP/1.0 peer is answered in kind and hung up on") {
  Served served;
  const std::string answer = served.answer("GET /healthz HTTP/1.0\r\n\r\n");
  CHECK(answer.starts_with("HTTP/1.0 200 OK\r\n"));
}

TEST_CASE("http: a peer that has gone silent is hung up on") {
  Served served({64, 16, 50ms});
  SUBCASE("before a word") { CHECK(served.answer("") == ""); }
  SUBCASE("within a request") { CHECK(served.answer("GET /stats HTTP/1.1\r\n") == ""); }
  SUBCASE("after a request") { CHECK(starts(served.answer(get("/healthz")), "200")); }
}

TEST_CASE("http: a peer that leaves within its request does no harm") {
  Served served;
  {
    Peer peer(served.loop, served.port());
    peer.send("GET /st");
    peer.end_sending();
    CHECK(served.run_until([&] { return peer.closed(); }));
    CHECK(peer.received().empty());
  }
  CHECK(starts(served.answer(get_once("/healthz")), "200"));
}

TEST_CASE("http: a hundred connections one after another leave nothing behind") {
  Served served({4, 16, 10s});
  for (int i = 0; i < 100; ++i) CHECK(starts(served.answer(get_once("/healthz")), "200"));
}

TEST_CASE("http: stop hangs up on open connections and frees the port") {
  Served served;
  Peer peer(served.loop, served.port());
  peer.send(get("/healthz"));
  REQUIRE(served.run_until([&] { return peer.count("ok\n") == 1; }));
  const std::string address = "127.0.0.1:" + std::to_string(served.port());
  served.endpoint->stop();
  CHECK(served.run_until([&] { return peer.closed(); }));
  CHECK(HttpServer::listen(served.loop, {{address}, {}}, {}));
}

TEST_CASE("http: an endpoint that is gone leaves the loop in peace") {
  Served served;
  Peer peer(served.loop, served.port());
  peer.send(get("/healthz"));
  REQUIRE(served.run_until([&] { return peer.count("ok\n") == 1; }));
  peer.send(get("/stats"));
  served.endpoint.reset();
  CHECK(served.run_until([&] { return peer.closed(); }));
}

TEST_CASE("http: a port in use is told with its address") {
  Served served;
  const std::string address = "127.0.0.1:" + std::to_string(served.port());
  const auto second = HttpServer::listen(served.loop, {{address}, {}}, {});
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::io_error);
  CHECK(second.error().message ==
        "cannot serve statistics on " + address +
            ": the address is in use, perhaps by another daemon on this host; set daemon.stats to "
            "another port, or to \"\" for none");
}

TEST_CASE("http: an address of no known form is refused") {
  asio::io_context loop;
  const auto listening = HttpServer::listen(loop, {{"everywhere"}, {}}, {});
  REQUIRE_FALSE(listening);
  CHECK(listening.error().code == ErrorCode::bad_configuration);
}
