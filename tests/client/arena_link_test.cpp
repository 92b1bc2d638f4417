#include "client/library/memory/arena_link.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

Descriptor unix_socket(int flags) {
  return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

/// Connections that wait to be accepted, as many as there is room for: one more would wait.
std::vector<Descriptor> fill(const sockaddr_un& address) {
  std::vector<Descriptor> waiting;
  while (true) {
    Descriptor one = unix_socket(SOCK_NONBLOCK);
    if (::connect(one.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return waiting;
    }
    waiting.push_back(std::move(one));
  }
}

/// The daemon's end of a bound connection.
Descriptor kept_end;

/// Accepts all that come, until one asks to be bound, and binds it; it is kept open if it is to be.
void bind_one(int listener, bool keep = false) {
  while (true) {
    Descriptor one(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!one) return;  // none came in time
    ArenaRequest request;
    if (::recv(one.get(), &request, sizeof request, 0) != sizeof request) continue;
    const ArenaReply reply;
    static_cast<void>(!::send(one.get(), &reply, sizeof reply, MSG_NOSIGNAL));
    if (keep) kept_end = std::move(one);
    return;
  }
}

}  // namespace

TEST_CASE("client: signals while the arena's socket has no room end no connect") {
  const TemporaryFolder folder;
  const std::string path = (folder / "s.arena").string();
  const sockaddr_un address = address_of(path);
  const Descriptor listener = unix_socket(0);
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener.get(), 0) == 0);
  const timeval limit{20, 0};
  REQUIRE(::setsockopt(listener.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
  auto waiting = fill(address);
  struct sigaction quiet {};
  struct sigaction before {};
  static std::atomic<int> signals = 0;
  quiet.sa_handler = [](int) { ++signals; };  // without SA_RESTART: calls end with EINTR
  REQUIRE(sigaction(SIGUSR2, &quiet, &before) == 0);
  std::atomic<bool> over = false;
  std::string error;
  std::thread opening([&] {
    const auto link = ArenaLink::open(
        path, SessionId{7}, Deadline(std::chrono::seconds(20), std::chrono::steady_clock::now()));
    if (!link) error = link.error().message;
    over = true;
  });
  signals = 0;
  while (!over && signals < 50) {
    pthread_kill(opening.native_handle(), SIGUSR2);
    std::this_thread::yield();
  }
  CHECK_FALSE(over);
  waiting.clear();  // they end without a word
  bind_one(listener.get());
  opening.join();
  CHECK(error == "");
  sigaction(SIGUSR2, &before, nullptr);
}

TEST_CASE("client: an answer about an arena that comes late is the next call's, asked for once") {
  const TemporaryFolder folder;
  const std::string path = (folder / "s.arena").string();
  const sockaddr_un address = address_of(path);
  const Descriptor listener = unix_socket(0);
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  std::thread binding([&] { bind_one(listener.get(), true); });
  auto link = ArenaLink::open(path, SessionId{7},
                              Deadline(std::chrono::seconds(20), std::chrono::steady_clock::now()));
  binding.join();
  REQUIRE(link);
  const auto begin = std::chrono::steady_clock::now();
  const auto late = (*link)->fetch(
      ArenaNumber{5}, Deadline(std::chrono::milliseconds(20), std::chrono::steady_clock::now()));
  REQUIRE_FALSE(late);
  CHECK(late.error().code == ErrorCode::timed_out);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  ArenaRequest request;
  REQUIRE(::recv(kept_end.get(), &request, sizeof request, MSG_DONTWAIT) == sizeof request);
  CHECK(request.arena == 5);
  ArenaReply reply;
  reply.arena = 5;
  reply.code = static_cast<std::uint32_t>(ErrorCode::not_found);
  // In two parts, between which a call may end.
  const auto send_part = [&](std::size_t from, std::size_t bytes) {
    const char* const begin_of_part = reinterpret_cast<const char*>(&reply) + from;
    REQUIRE(::send(kept_end.get(), begin_of_part, bytes, MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes));
  };
  send_part(0, 10);
  CHECK((*link)
            ->fetch(ArenaNumber{5},
                    Deadline(std::chrono::milliseconds(1), std::chrono::steady_clock::now()))
            .error()
            .code == ErrorCode::timed_out);
  send_part(10, sizeof reply - 10);
  const auto refused = (*link)->fetch(
      ArenaNumber{5}, Deadline(std::chrono::seconds(20), std::chrono::steady_clock::now()));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("refuses arena 5") != std::string::npos);
  CHECK(::recv(kept_end.get(), &request, sizeof request, MSG_DONTWAIT) < 0);
  kept_end = Descriptor();
}
