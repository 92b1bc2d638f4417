#pragma once

#include <doctest/doctest.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "daemon/http/http.h"

// An endpoint, and peers of it on the same loop.

namespace batchwright::test {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

/// A peer on the same loop: sends as told, keeps what comes, knows when it was hung up on.
class Peer {
 public:
  Peer(asio::io_context& loop, std::uint16_t port)
      : Peer(loop, tcp::endpoint(asio::ip::make_address("127.0.0.1"), port)) {}
  Peer(asio::io_context& loop, const asio::generic::stream_protocol::endpoint& where)
      : socket_(loop) {
    socket_.connect(where);
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
  /// Takes no more of what comes.
  void stop_reading() { *reads_ = false; }
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
    const auto buffer = std::make_shared<std::vector<char>>(64 << 10);
    socket_.async_read_some(asio::buffer(*buffer),
                            [this, buffer, text = received_, closed = closed_, reads = reads_](
                                error_code code, std::size_t bytes) {
                              text->append(buffer->data(), bytes);
                              *closed = *closed || code;
                              if (!*closed && *reads) read();
                            });
  }

  asio::generic::stream_protocol::socket socket_;
  std::shared_ptr<std::string> received_ = std::make_shared<std::string>();
  std::shared_ptr<bool> reads_ = std::make_shared<bool>(true);
  std::shared_ptr<bool> closed_ = std::make_shared<bool>(false);
};

inline constexpr const char* kAnyPort = "127.0.0.1:0";

/// An endpoint on a free port, and the loop it lives on.
struct Served {
  explicit Served(EndpointLimits limits = {}, std::vector<std::string> addresses = {kAnyPort},
                  const std::string& secret = "") {
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
    EndpointPlace place{std::move(addresses), {}, limits};
    place.secret = secret;
    auto listening = HttpServer::listen(loop, place, std::move(routes));
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
  std::uint16_t port() const { return endpoint->ports().at(0); }

  std::string page = "{}";
  std::vector<Target> asked;
  std::vector<std::function<void(Reply)>> answers;
  std::unique_ptr<HttpServer> endpoint;
};

inline std::string get(const std::string& path, const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n";
}

inline std::string get_once(const std::string& path) { return get(path, "Connection: close\r\n"); }

inline bool starts(const std::string& answer, const std::string& status) {
  INFO(answer);
  return answer.starts_with("HTTP/1.1 " + status);
}

}  // namespace batchwright::test
