#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "daemon/stats/stats.h"

using namespace batchwright;
namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

namespace {

/// A peer on the same loop: sends as told, keeps what comes, knows when it was hung up on.
class Peer {
 public:
  Peer(asio::io_context& loop, std::uint16_t port) : socket_(loop) {
    socket_.connect({asio::ip::make_address("127.0.0.1"), port});
    read();
  }
  ~Peer() {
    *closed_ = true;
    error_code ignored;
    socket_.close(ignored);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void send(std::string text) {
    const auto kept = std::make_shared<std::string>(std::move(text));
    // A peer that is refused half-way may find the connection closed; what came back counts.
    asio::async_write(socket_, asio::buffer(*kept), [kept](error_code, std::size_t) {});
  }
  void end_sending() { socket_.shutdown(tcp::socket::shutdown_send); }
  const std::string& received() const { return *received_; }
  std::size_t count(const std::string& text) const {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = received_->find(text, at)) != std::string::npos; ++at) ++found;
    return found;
  }
  bool closed() const { return *closed_; }

 private:
  void read() {
    const auto buffer = std::make_shared<std::vector<char>>(4096);
    socket_.async_read_some(
        asio::buffer(*buffer),
        [this, buffer, text = received_, closed = closed_](error_code code, std::size_t bytes) {
          text->append(buffer->data(), bytes);
          *closed = *closed || code;
          if (!*closed) read();
        });
  }

  tcp::socket socket_;
  std::shared_ptr<std::string> received_ = std::make_shared<std::string>();
  std::shared_ptr<bool> closed_ = std::make_shared<bool>(false);
};

/// An endpoint on a free port, and the loop it lives on.
struct Served {
  explicit Served(EndpointLimits limits = {}) {
    Routes routes;
    routes.pages["/healthz"] = [] { return Reply{200, "text/plain", "ok\n"}; };
    routes.pages["/stats"] = [this] { return Reply{200, "application/json", page}; };
    routes.pages["/broken"] = []() -> Reply { throw std::runtime_error("no figures"); };
    routes.live["/live"] = [this] { return page; };
    routes.later["/feeds/NAME/plan"] = [this](const Target& target,
                                              std::function<void(Reply)> answer) {
      asked.push_back(target);
      answers.push_back(std::move(answer));
    };
    auto listening = Endpoint::listen(loop, {{"127.0.0.1:0"}, {}, limits}, std::move(routes));
    REQUIRE(listening);
    endpoint = std::move(*listening);
  }

  template <class Condition>
  bool run_until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    loop.restart();
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      loop.run_one_for(1s);
      if (loop.stopped()) loop.restart();
    }
    return true;
  }

  /// What comes back until the server hangs up.
  std::string answer(const std::string& request) {
    Peer peer(loop, port());
    peer.send(request);
    CHECK(run_until([&] { return peer.closed(); }));
    return peer.received();
  }

  asio::io_context loop{1};
  std::uint16_t port() const { return endpoint->ports()[0]; }

  std::string page = "{}";
  std::vector<Target> asked;
  std::vector<std::function<void(Reply)>> answers;
  std::unique_ptr<Endpoint> endpoint;
};

std::string get(const std::string& path, const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: here\r\n" + more + "\r\n";
}

std::string get_once(const std::string& path) { return get(path, "Connection: close\r\n"); }

bool starts(const std::string& answer, const std::string& status) {
  INFO(answer);
  return answer.starts_with("HTTP/1.1 " + status);
}

}  // namespace

TEST_CASE("stats: a page comes with its type and length") {
  Served served;
  served.page = "{\"a\":1}";
  const std::string answer = served.answer(get_once("/stats"));
  CHECK(starts(answer, "200 OK\r\n"));
  CHECK(answer.find("Content-Type: application/json\r\n") != std::string::npos);
  CHECK(answer.find("Content-Length: 7\r\n") != std::string::npos);
  CHECK(answer.ends_with("\r\n\r\n{\"a\":1}"));
}

TEST_CASE("stats: a page larger than any buffer comes whole") {
  Served served;
  served.page = std::string(8 << 20, 'x');
  const std::string answer = served.answer(get_once("/stats"));
  CHECK(answer.ends_with("\r\n\r\n" + served.page));
}

TEST_CASE("stats: a query is no part of the path") {
  Served served;
  CHECK(starts(served.answer(get_once("/healthz?a=b")), "200"));
}

TEST_CASE("stats: an unknown path is answered with those that are known") {
  Served served;
  const std::string answer = served.answer(get_once("/metricss"));
  CHECK(starts(answer, "404"));
  CHECK(
      answer.ends_with("nothing here; there is: /broken /healthz /stats /live /feeds/NAME/plan\n"));
}

TEST_CASE("stats: other methods are refused, with and without a body") {
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

TEST_CASE("stats: a body is refused") {
  Served served;
  CHECK(starts(served.answer(get("/stats", "Content-Length: 3\r\n") + "abc"), "413"));
  CHECK(starts(served.answer(get("/stats", "Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\n"),
               "413"));
}

TEST_CASE("stats: what is no HTTP is answered with 400") {
  Served served;
  for (const char* text : {"hello\r\n\r\n", "GET /stats\r\n\r\n", "GET /stats HTTP/9.9\r\n\r\n",
                           "GET /stats HTTP/1.1\r\nno colon\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n",
                           "GET /stats HTTP/1.1\r\nContent-Length: many\r\n\r\n"}) {
    CAPTURE(text);
    CHECK(starts(served.answer(text), "400"));
  }
}

TEST_CASE("stats: a header above 8 KiB is refused, one below is served") {
  Served served;
  const std::string padding(7000, 'x');
  CHECK(starts(served.answer(get("/stats", "Connection: close\r\nX: " + padding + "\r\n")), "200"));
  CHECK(starts(served.answer(get("/stats", "X: " + padding + padding + "\r\n")), "431"));
  // Endless: the answer comes although the request has not ended.
  CHECK(starts(served.answer(get("/stats", std::string(1 << 20, 'y'))), "431"));
}

TEST_CASE("stats: a page that cannot be made is 500, and the endpoint goes on") {
  Served served;
  CHECK(starts(served.answer(get_once("/broken")), "500"));
  CHECK(starts(served.answer(get_once("/healthz")), "200"));
}

TEST_CASE("stats: a connection serves one request after the other") {
  Served served;
  Peer peer(served.loop, served.port());
  peer.send(get("/healthz"));
  REQUIRE(served.run_until([&] { return peer.count("ok\n") == 1; }));
  peer.send(get("/healthz") + get("/stats") + get("/healthz"));
  REQUIRE(served.run_until([&] { return peer.count("ok\n") == 3; }));
  CHECK(peer.count("HTTP/1.1 200 OK\r\n") == 4);
  CHECK_FALSE(peer.closed());
}

TEST_CASE("stats: an HTTP/1.0 peer is answered in kind and hung up on") {
  Served served;
  const std::string answer = served.answer("GET /healthz HTTP/1.0\r\n\r\n");
  CHECK(answer.starts_with("HTTP/1.0 200 OK\r\n"));
}

TEST_CASE("stats: a peer that has gone silent is hung up on") {
  Served served({64, 16, 50ms});
  SUBCASE("before a word") { CHECK(served.answer("") == ""); }
  SUBCASE("within a request") { CHECK(served.answer("GET /stats HTTP/1.1\r\n") == ""); }
  SUBCASE("after a request") { CHECK(starts(served.answer(get("/healthz")), "200")); }
}

TEST_CASE("stats: a peer that leaves within its request harms nobody") {
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

TEST_CASE("stats: a hundred connections one after the other leave nothing behind") {
  Served served({4, 16, 10s});
  for (int i = 0; i < 100; ++i) CHECK(starts(served.answer(get_once("/healthz")), "200"));
}

TEST_CASE("stats: stop hangs up on open connections and frees the port") {
  Served served;
  Peer peer(served.loop, served.port());
  peer.send(get("/healthz"));
  REQUIRE(served.run_until([&] { return peer.count("ok\n") == 1; }));
  const std::string address = "127.0.0.1:" + std::to_string(served.port());
  served.endpoint->stop();
  CHECK(served.run_until([&] { return peer.closed(); }));
  CHECK(Endpoint::listen(served.loop, {{address}, {}}, {}));
}

TEST_CASE("stats: an endpoint that is gone leaves the loop in peace") {
  Served served;
  Peer peer(served.loop, served.port());
  peer.send(get("/healthz"));
  REQUIRE(served.run_until([&] { return peer.count("ok\n") == 1; }));
  peer.send(get("/stats"));
  served.endpoint.reset();
  CHECK(served.run_until([&] { return peer.closed(); }));
}

TEST_CASE("stats: a port in use is told with its address") {
  Served served;
  const std::string address = "127.0.0.1:" + std::to_string(served.port());
  const auto second = Endpoint::listen(served.loop, {{address}, {}}, {});
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::io_error);
  CHECK(second.error().message ==
        "cannot serve statistics on " + address + ": bind: Address already in use");
}

TEST_CASE("stats: an address of no known form is refused") {
  asio::io_context loop;
  const auto listening = Endpoint::listen(loop, {{"everywhere"}, {}}, {});
  REQUIRE_FALSE(listening);
  CHECK(listening.error().code == ErrorCode::bad_configuration);
}
