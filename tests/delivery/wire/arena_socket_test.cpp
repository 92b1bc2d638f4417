#include "daemon/delivery/wire/arena_socket.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// An arena socket with its loop, that hands out one arena and binds every session.
class Door {
 public:
  explicit Door(std::size_t connections) {
    ArenaSocket::Callbacks calls;
    calls.bind = [](SessionId) { return true; };
    calls.spoilt = [this](SessionId session, const std::string& why) {
      spoilt_ = why;
      socket_->disconnect(session);
    };
    calls.lost = [](SessionId) {};
    calls.find = [](SessionId, ArenaNumber) { return ArenaHandle{STDIN_FILENO, 1}; };
    auto socket = ArenaSocket::listen(loop_, path(), {connections}, std::move(calls));
    REQUIRE(socket);
    socket_ = std::move(*socket);
  }

  std::string path() const { return (folder_ / "arena").string(); }
  const std::string& spoilt() const { return spoilt_; }
  /// Does what is due, until `holds`, at most 10 s.
  template <class Holds>
  bool run_until(Holds holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(5));
    }
    return true;
  }

 private:
  TemporaryFolder folder_;
  boost::asio::io_context loop_{1};
  std::unique_ptr<ArenaSocket> socket_;
  std::string spoilt_;
};

class Visitor {
 public:
  explicit Visitor(const Door& door) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, door.path().c_str(), sizeof address.sun_path - 1);
    REQUIRE(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~Visitor() { ::close(fd_); }
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;

  void ask(std::uint32_t arena, std::uint64_t session) const {
    ArenaRequest request;
    request.arena = arena;
    request.session = session;
    static_cast<void>(::send(fd_, &request, sizeof request, MSG_NOSIGNAL));
  }
  bool is_answered() const { return ready(POLLIN); }
  bool is_ended() const { return ready(POLLRDHUP); }
  /// Takes an answer; the descriptor is closed by the kernel.
  bool take() const {
    ArenaReply reply;
    return ::recv(fd_, &reply, sizeof reply, MSG_DONTWAIT) == sizeof reply && reply.code == 0;
  }

 private:
  bool ready(short what) const {
    pollfd item{fd_, what, 0};
    return ::poll(&item, 1, 0) == 1 && (item.revents & what) != 0;
  }
  int fd_;
};

}  // namespace

TEST_CASE(
    "delivery: when the arena socket is full the oldest that is silent goes, not the newest") {
  Door door(3);
  const Visitor bound(door);
  bound.ask(0, 1);
  REQUIRE(door.run_until([&] { return bound.take(); }));
  std::vector<std::unique_ptr<Visitor>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<Visitor>(door));
  CHECK(door.run_until([&] { return silent[17]->is_ended(); }));
  const Visitor honest(door);
  honest.ask(0, 2);
  CHECK(door.run_until([&] { return honest.take(); }));
  CHECK(silent[18]->is_ended());
  CHECK_FALSE(silent[19]->is_ended());
  CHECK_FALSE(bound.is_ended());
}

TEST_CASE("delivery: an arena socket whose connections all have sessions refuses a newcomer") {
  Door door(2);
  const Visitor one(door);
  const Visitor other(door);
  one.ask(0, 1);
  other.ask(0, 2);
  REQUIRE(door.run_until([&] { return one.is_answered() && other.is_answered(); }));
  const Visitor late(door);
  CHECK(door.run_until([&] { return late.is_ended(); }));
  CHECK_FALSE(one.is_ended());
}

TEST_CASE("delivery: few descriptors are on their way to a client that does not receive them") {
  Door door(3);
  const Visitor client(door);
  client.ask(0, 1);
  REQUIRE(door.run_until([&] { return client.take(); }));
  for (int i = 0; i < 10; ++i) client.ask(1, 1);
  CHECK(door.run_until([&] { return !door.spoilt().empty(); }));
  CHECK(door.spoilt() == "it asks for arenas and leaves 2 answers unread");
}

TEST_CASE("delivery: a client that receives what it asks for may ask as often as it likes") {
  Door door(3);
  const Visitor client(door);
  client.ask(0, 1);
  REQUIRE(door.run_until([&] { return client.take(); }));
  for (int i = 0; i < 100; ++i) {
    client.ask(1, 1);
    REQUIRE(door.run_until([&] { return client.take(); }));
  }
  CHECK(door.spoilt().empty());
}
