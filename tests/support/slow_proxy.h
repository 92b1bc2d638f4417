#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <list>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace batchwright::test {

/// A link to a `tcp://127.0.0.1` endpoint that lets so many bytes pass each second towards those
/// that connect, and can stand still like a host whose process is stopped: connections stay, and
/// nothing is read any more.
class SlowProxy {
 public:
  /// `rate`: bytes a second; 0: no limit.
  SlowProxy(const std::string& endpoint, std::size_t rate) : rate_(rate), to_(port_of(endpoint)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    set_small(listener_);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 8) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("the proxy cannot listen");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~SlowProxy() {
    stopped_ = true;
    thread_.join();
    for (const Pair& pair : pairs_) {
      ::close(pair.client);
      ::close(pair.server);
    }
    ::close(listener_);
  }
  SlowProxy(const SlowProxy&) = delete;
  SlowProxy& operator=(const SlowProxy&) = delete;

  std::string endpoint() const { return "tcp://127.0.0.1:" + std::to_string(port_); }
  void freeze() { frozen_ = true; }
  void thaw() { frozen_ = false; }
  /// Connections that were made so far.
  int connections() const { return connections_; }

 private:
  struct Way {
    std::vector<char> held;  ///< Was read, and is to be written.
    bool over = false;
  };
  struct Pair {
    int client = -1;
    int server = -1;
    Way up;
    Way down;
  };
  static constexpr std::chrono::milliseconds kTick{5};
  static constexpr std::size_t kChunk = 65'536;

  static std::uint16_t port_of(const std::string& endpoint) {
    const std::string digits = endpoint.substr(endpoint.rfind(':') + 1);
    std::uint16_t port = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), port);
    return port;
  }
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  /// So that what waits for the link waits at the sender.
  static void set_small(int socket) {
    const int bytes = kChunk;
    ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  }

  void run() {
    auto last = std::chrono::steady_clock::now();
    double budget = 0;
    while (!stopped_) {
      pollfd item{listener_, POLLIN, 0};
      ::poll(&item, 1, static_cast<int>(kTick.count()));
      accept();
      const auto now = std::chrono::steady_clock::now();
      const std::chrono::duration<double> passed = now - std::exchange(last, now);
      budget = std::min(budget + passed.count() * static_cast<double>(rate_), kChunk * 4.0);
      if (frozen_) continue;
      for (Pair& pair : pairs_) relay(pair, budget);
    }
  }

  void accept() {
    const int client = ::accept(listener_, nullptr, nullptr);
    if (client < 0) return;
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    set_small(server);
    const sockaddr_in address = loopback(to_);
    static_cast<void>(
        ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address));
    for (const int each : {client, server}) ::fcntl(each, F_SETFL, O_NONBLOCK);
    pairs_.push_back({client, server, {}, {}});
    ++connections_;
  }

  void relay(Pair& pair, double& budget) {
    for (bool moved = true; moved && !stopped_;) {
      moved = move(pair.client, pair.server, pair.up, kChunk) > 0;
      const auto most = rate_ == 0 ? kChunk : static_cast<std::size_t>(budget);
      const std::size_t sent = move(pair.server, pair.client, pair.down, std::min(most, kChunk));
      if (rate_ != 0) budget -= static_cast<double>(sent);
      moved = moved || sent > 0;
    }
  }

  /// The bytes that were written.
  static std::size_t move(int from, int to, Way& way, std::size_t most) {
    if (most == 0 || way.over) return 0;
    if (way.held.empty()) {
      std::array<char, kChunk> chunk{};
      const ssize_t got = ::recv(from, chunk.data(), most, 0);
      if (got == 0) {
        ::shutdown(to, SHUT_WR);
        way.over = true;
      }
      if (got <= 0) return 0;
      way.held.assign(chunk.data(), chunk.data() + got);
    }
    const ssize_t sent = ::send(to, way.held.data(), way.held.size(), MSG_NOSIGNAL);
    if (sent <= 0) return 0;
    way.held.erase(way.held.begin(), way.held.begin() + sent);
    return static_cast<std::size_t>(sent);
  }

  const std::size_t rate_;
  const std::uint16_t to_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::list<Pair> pairs_;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> frozen_ = false;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

}  // namespace batchwright::test
