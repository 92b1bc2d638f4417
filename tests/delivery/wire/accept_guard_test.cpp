// Connections that say nothing, in a process that may open few files: by construction, since a
// server in a child process has a low limit and the silent ones are this process's.

#include "daemon/delivery/wire/accept_guard.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr rlim_t kFiles = 300;
constexpr int kSilent = 350;

/// A server that may open kFiles files, in a process of its own.
class SmallServer {
 public:
  SmallServer() {
    REQUIRE(::pipe(to_child_.data()) == 0);
    REQUIRE(::pipe(to_parent_.data()) == 0);
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) serve();
    ::close(to_child_[0]);
    ::close(to_parent_[1]);
    std::array<char, 64> text{};
    for (std::size_t have = 0; have < text.size();) {
      const ssize_t got = ::read(to_parent_[0], text.data() + have, text.size() - have);
      REQUIRE(got > 0);
      have += static_cast<std::size_t>(got);
    }
    remote_ = text.data();
  }
  ~SmallServer() {
    ::close(to_child_[1]);
    if (child_ > 0) end();
    ::close(to_parent_[0]);
  }
  SmallServer(const SmallServer&) = delete;
  SmallServer& operator=(const SmallServer&) = delete;

  std::string path() const { return (folder_ / "s").string(); }
  const std::string& remote() const { return remote_; }

  /// Asks it to end. True when it lived until then, and had refused connections.
  bool end() {
    static_cast<void>(!::write(to_child_[1], "!", 1));
    int status = 1;
    ::waitpid(std::exchange(child_, 0), &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  [[noreturn]] void serve() {
    ::close(to_child_[1]);
    const rlimit limit{kFiles, kFiles};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    bool refused = false;
    {
      ServerSettings settings;
      settings.endpoints = {"ipc://" + path(), "tcp://127.0.0.1:0"};
      settings.max_clients = 20;
      TestServer server(sorted_feed(4), settings);
      std::array<char, 64> text{};
      const std::string at = server.endpoint(1);
      std::copy(at.begin(), at.end(), text.begin());
      static_cast<void>(!::write(to_parent_[1], text.data(), text.size()));
      char byte = 0;
      static_cast<void>(!::read(to_child_[0], &byte, 1));
      refused =
          server.ask([](const Server& s) { return s.log().get(Event::connection_refused) > 0; });
    }
    ::_exit(refused ? 0 : 3);
  }

  TemporaryFolder folder_;
  std::array<int, 2> to_child_{};
  std::array<int, 2> to_parent_{};
  std::string remote_;
  pid_t child_ = 0;
};

/// Connections that are made and say nothing.
class Silent {
 public:
  Silent() = default;
  ~Silent() {
    for (const int fd : connections_) ::close(fd);
  }
  Silent(const Silent&) = delete;
  Silent& operator=(const Silent&) = delete;

  void connect_local(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  void connect_remote(const std::string& endpoint) {
    const std::string digits = endpoint.substr(endpoint.rfind(':') + 1);
    std::uint16_t port = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), port);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  /// Whether the daemon ends every one of them within `limit` each.
  bool all_are_ended() const {
    for (const int fd : connections_) {
      pollfd item{fd, POLLRDHUP, 0};
      if (::poll(&item, 1, 20'000) != 1) return false;
    }
    return true;
  }

 private:
  void connect(int family, const sockaddr* address, socklen_t size) {
    const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0);
    connections_.push_back(fd);
    REQUIRE(::connect(fd, address, size) == 0);
  }

  std::vector<int> connections_;
};

bool is_served(const SmallServer& server) {
  RawClient client("ipc://" + server.path());
  client.join(server.path() + ".arena");
  client.send(subscribe_to_train());
  return indices_to_the_end(client) == numbers(0, 10);
}

}  // namespace

TEST_CASE("delivery: silent connections from the network leave descriptors for local clients") {
  SmallServer server;
  Silent silent;
  for (int i = 0; i < kSilent; ++i) silent.connect_remote(server.remote());
  CHECK(is_served(server));
  CHECK(silent.all_are_ended());
  CHECK(server.end());
}

TEST_CASE("delivery: silent local connections do not end the daemon, and are ended themselves") {
  SmallServer server;
  Silent silent;
  for (int i = 0; i < kSilent; ++i) silent.connect_local(server.path());
  CHECK(silent.all_are_ended());
  CHECK(is_served(server));
  CHECK(server.end());
}

TEST_CASE("delivery: descriptors are shared out to networks, local clients and all else") {
  const DescriptorShares few = shares_of(300);
  CHECK(few.remote == 225);
  CHECK(few.local == 263);
  const DescriptorShares many = shares_of(262'144);
  CHECK(many.remote == 196'608);
  CHECK(many.local == 262'080);
  CHECK(shares_of(UINT64_MAX).local == INT32_MAX - 64);
}

TEST_CASE("delivery: threads for remote peers are half the cores, one to eight") {
  CHECK(SocketThreads::remote_threads_of(0) == 1);
  CHECK(SocketThreads::remote_threads_of(2) == 1);
  CHECK(SocketThreads::remote_threads_of(8) == 4);
  CHECK(SocketThreads::remote_threads_of(128) == 8);
}
