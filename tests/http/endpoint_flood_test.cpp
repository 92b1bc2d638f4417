#include <sys/resource.h>

#include <algorithm>

#include "tests/http/served_http.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// As many as this process may have, half of them peers' and half the server's.
std::size_t many_connections() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return std::min<std::size_t>(2000, limit.rlim_cur / 2 - 64);
}

}  // namespace

TEST_CASE("http: a request is answered however many peers connect and dawdle") {
  Served served({64, 16, 60s});
  const std::size_t most = many_connections();
  std::vector<std::unique_ptr<Peer>> peers;
  for (std::size_t i = 0; i < most; ++i) {
    peers.push_back(std::make_unique<Peer>(served.loop, served.port()));
    // Silent, slow, endless or no HTTP at all.
    if (i % 4 == 1) peers.back()->send("GET /stats HTTP/1.1\r\nX: ");
    if (i % 4 == 2) peers.back()->send(get("/stats", std::string(64 << 10, 'y')));
    if (i % 4 == 3) peers.back()->send("\x16\x03\x01\x02\r\n\r\n");
    if (i % 64 == 0) served.loop.poll();
    if (i % 500 == 0) CHECK(starts(served.answer(get_once("/healthz")), "200"));
  }
  CHECK(starts(served.answer(get_once("/healthz")), "200"));
  REQUIRE(served.run_until([&] { return served.endpoint->figures().connections <= 64; }));
  CHECK(served.endpoint->figures().refused >= most / 2);
}

TEST_CASE("http: the peer that was silent longest makes room, one that reads events stays") {
  Served served({2, 16, 60s});
  Peer reader(served.loop, served.port());
  reader.send(get("/live"));
  REQUIRE(served.run_until([&] { return reader.count("data: ") == 1; }));
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(std::make_unique<Peer>(served.loop, served.port()));
    peers.back()->send(get("/healthz"));
    REQUIRE(served.run_until([&] { return peers.back()->count("ok\n") == 1; }));
  }
  CHECK(served.run_until([&] { return peers[0]->closed(); }));
  CHECK_FALSE(peers[1]->closed());
  CHECK_FALSE(peers[2]->closed());
  CHECK_FALSE(reader.closed());
  CHECK(served.endpoint->figures().refused == 1);
}
