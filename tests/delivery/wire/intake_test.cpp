// What a connection may send before the daemon closes it: messages without end, from peers that
// are no clients.

#include "daemon/delivery/wire/intake.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

std::string greeting(std::string_view mechanism) {
  std::string text = "\xff" + std::string(8, '\0') + "\x7f\x03" + std::string(1, '\0');
  text += mechanism;
  text.resize(64, '\0');
  return text;
}

/// A frame with this flag byte; 2 makes it a long one.
std::string frame(unsigned char flags, std::string_view body) {
  std::string text(1, static_cast<char>(flags));
  if ((flags & 2) == 0) return text + static_cast<char>(body.size()) + std::string(body);
  for (int shift = 56; shift >= 0; shift -= 8) {
    text += static_cast<char>(static_cast<std::uint64_t>(body.size()) >> shift);
  }
  return text + std::string(body);
}

std::int64_t cost(FrameMeter& meter, std::string_view text) { return meter.take(bytes_of(text)); }

/// A connection by hand, to an `ipc://` or `tcp://` endpoint, that is a DEALER's or another's.
class ByHand {
 public:
  explicit ByHand(const std::string& endpoint, std::string_view kind = "DEALER") {
    endpoint.starts_with("ipc://") ? connect_local(endpoint.substr(6)) : connect_remote(endpoint);
    const timeval limit{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    REQUIRE(send(greeting("NULL")));
    std::string ready("\5READY\13Socket-Type\0\0\0", 21);
    ready += static_cast<char>(kind.size());
    REQUIRE(send(frame(4, ready.append(kind))));
    // ZeroMQ cuts off a peer that says more before the other side's READY.
    const std::string head = receive(64 + 2);
    receive(static_cast<unsigned char>(head.back()));
  }
  ~ByHand() { ::close(fd_); }
  ByHand(const ByHand&) = delete;
  ByHand& operator=(const ByHand&) = delete;

  /// False when the connection was ended.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// Sends a text again and again, so many bytes at most. How many left before it was ended.
  std::size_t flood(std::string_view text, std::size_t most) {
    std::size_t sent = 0;
    while (sent < most && send(text)) sent += text.size();
    return sent;
  }

 private:
  std::string receive(std::size_t bytes) {
    std::string text(bytes, '\0');
    REQUIRE(::recv(fd_, text.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes));
    return text;
  }
  void connect_local(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  /// Of either family: the port comes after the last colon.
  void connect_remote(const std::string& endpoint) {
    const std::string digits = endpoint.substr(endpoint.rfind(':') + 1);
    std::uint16_t port = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), port);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 longer{};
    longer.sin6_family = AF_INET6;
    longer.sin6_port = htons(port);
    longer.sin6_addr = in6addr_loopback;
    const bool is_v6 = endpoint.find('[') != std::string::npos;
    fd_ = ::socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int one = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    const auto* to = is_v6 ? reinterpret_cast<const sockaddr*>(&longer)
                           : reinterpret_cast<const sockaddr*>(&address);
    REQUIRE(::connect(fd_, to, is_v6 ? sizeof longer : sizeof address) == 0);
  }

  int fd_ = -1;
};

std::size_t resident_bytes() {
  std::size_t total = 0;
  std::size_t resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  REQUIRE(file != nullptr);
  REQUIRE(std::fscanf(file, "%zu %zu", &total, &resident) == 2);
  std::fclose(file);
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

constexpr std::size_t kMiB = std::size_t{1} << 20;
/// What a flood is cut off at, far below what it would send; the system's buffers are in between.
constexpr std::size_t kFlood = 256 * kMiB;
constexpr std::size_t kCutOff = 64 * kMiB;

}  // namespace

TEST_CASE("delivery: a message without end ends its connection, is named, and others go on") {
  const TemporaryFolder folder;
  ServerSettings settings;
  settings.endpoints = {"ipc://" + (folder / "s").string(), "tcp://127.0.0.1:0", "tcp://[::1]:0"};
  TestServer server(sorted_feed(4), settings);
  RawClient honest(server.endpoint(1));
  REQUIRE(honest.hello(true) != 0);
  std::uint64_t cut = 0;
  for (std::size_t endpoint = 0; endpoint < 3; ++endpoint) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{40}, std::size_t{10'000}, kMiB}) {
      CAPTURE(endpoint);
      CAPTURE(bytes);
      const std::size_t before = resident_bytes();
      ByHand peer(server.endpoint(endpoint));
      const std::size_t sent = peer.flood(frame(3, std::string(bytes, 'x')), kFlood);
      CAPTURE(sent);
      CHECK(sent < kCutOff);
      CHECK(server.eventually([&](TestServer& s) {
        return s.ask([](const Server& w) { return w.log().get(Event::connection_flooded); }) > cut;
      }));
      ++cut;
      CHECK(resident_bytes() < before + kCutOff);
    }
  }
  const std::string told = server.ask([](const Server& s) {
    for (const LoggedEvent& each : s.log().latest()) {
      if (each.event == Event::connection_flooded) return each.text;
    }
    return std::string();
  });
  CHECK(told.find("process " + std::to_string(::getpid()) + " of user ") != std::string::npos);
  honest.send(subscribe_to_train());
  CHECK(indices_to_the_end(honest) == numbers(0, 10));
}

TEST_CASE("delivery: commands that stand for parts without end are cut off, too") {
  TestServer server(sorted_feed(4));
  ByHand peer(server.endpoint());
  CHECK(peer.flood(frame(5, "\11SUBSCRIBEx"), kFlood) < kCutOff);
}

TEST_CASE("delivery: subscriptions to events without end are cut off") {
  const TemporaryFolder folder;
  ServerSettings settings;
  settings.endpoints = {"ipc://" + (folder / "s").string()};
  settings.events = "ipc://" + (folder / "e").string();
  TestServer server(sorted_feed(4), settings);
  ByHand peer(settings.events, "SUB");
  std::size_t sent = 0;
  std::uint64_t topic = 0;
  while (sent < kCutOff && peer.send(frame(0, "\1" + std::to_string(++topic)))) ++sent;
  CHECK(sent < kCutOff);
}

TEST_CASE("delivery: a client that says much, and is heard, is never cut off") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  REQUIRE(client.hello(true) != 0);
  wire::ReleaseT release;
  release.subscription = 1;
  release.leases.assign(2'000, 0);  // leases of no one
  for (int i = 0; i < 2'000; ++i) client.send(release);
  client.send(subscribe_to_train());
  CHECK(indices_to_the_end(client) == numbers(0, 10));
}

TEST_CASE("delivery: a part costs its bytes, its object, and the buffer that it is read into") {
  FrameMeter meter;
  CHECK(cost(meter, greeting("NULL")) == 64);
  CHECK_FALSE(meter.is_encrypted());
  CHECK(cost(meter, frame(1, "x")) == 3 + FrameMeter::kPart);
  CHECK(cost(meter, frame(1, std::string(40, 'x'))) ==
        42 + FrameMeter::kPart + FrameMeter::kBuffer);
  const std::string two = frame(1, std::string(40, 'x')) + frame(3, std::string(300, 'y'));
  CHECK(cost(meter, two) == 42 + 309 + 2 * FrameMeter::kPart + FrameMeter::kBuffer);
  CHECK(cost(meter, frame(0, "")) == 2 + FrameMeter::kPart);
}

TEST_CASE("delivery: frames are told apart however the bytes come") {
  const std::string text = greeting("NULL") + frame(3, std::string(300, 'y')) + frame(4, "\4PING") +
                           frame(0, "abc") + frame(4, std::string("\4PONG\0\0", 7));
  std::int64_t single = 0;
  FrameMeter meter;
  for (const char letter : text) single += cost(meter, {&letter, 1});
  CHECK(single == 64 + 309 + 5 + 2 * FrameMeter::kPart + FrameMeter::kBuffer);
  FrameMeter other;
  CHECK(cost(other, text) == single);
}

TEST_CASE("delivery: what is no ZMTP from version 2 on is foreign") {
  for (const std::string& text : {std::string("GET / HTTP/1.1\r\n"), "\xff" + std::string(9, '\0'),
                                  "\xff" + std::string(8, '\0') + "\x7f" + std::string(1, '\0')}) {
    FrameMeter meter;
    static_cast<void>(cost(meter, text));
    CHECK(meter.is_foreign());
  }
  FrameMeter second;  // version 2: a shorter greeting
  static_cast<void>(cost(second, "\xff" + std::string(8, '\0') + "\x7f\x01\x05"));
  CHECK(cost(second, frame(0, "x")) == 3 + FrameMeter::kPart);
  CHECK_FALSE(second.is_foreign());
}

TEST_CASE("delivery: a client that only answers heartbeats for days is not cut off") {
  for (const char* const mechanism : {"NULL", "CURVE"}) {
    CAPTURE(mechanism);
    Intake::Clock::time_point now{};
    Intake intake;
    intake.begin(now);
    CHECK(intake.take(bytes_of(std::string_view(greeting(mechanism))), now) ==
          Intake::Verdict::fine);
    const bool is_plain = std::string_view(mechanism) == "NULL";
    const std::string ping = is_plain ? frame(4, "\4PING\1\2") : frame(0, std::string(40, 'x'));
    bool fine = true;
    for (int minute = 0; minute < 3 * 24 * 60; ++minute) {
      now += 1min;
      const std::string_view text = ping;
      for (int i = 0; i < 120; ++i) {  // pings and pongs, each in a read of its own
        fine = fine && intake.take(bytes_of(text), now) == Intake::Verdict::fine;
      }
    }
    CHECK(fine);
    CHECK(intake.unconsumed() < kMostUnconsumed / 2);
  }
}

TEST_CASE("delivery: what is consumed gives back all that its parts may have cost") {
  Intake intake;
  intake.begin({});
  CHECK(intake.take(bytes_of(std::string_view(greeting("CURVE"))), {}) == Intake::Verdict::fine);
  for (int i = 0; i < 10'000; ++i) {
    const std::string text = frame(2, std::string(5'000, 'x'));
    REQUIRE(intake.take(bytes_of(std::string_view(text)), {}) == Intake::Verdict::fine);
    intake.consumed(1, 5'000 - 33);
  }
  CHECK(intake.unconsumed() == 0);
}
