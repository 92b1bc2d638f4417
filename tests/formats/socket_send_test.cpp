#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "formats/formats.h"

using namespace batchwright;

namespace {

constexpr uid_t kNobody = 65'534;

/// Two ends of a connection.
struct Ends {
  Ends() {
    int both[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
    ours = Descriptor(both[0]);
    peers = Descriptor(both[1]);
  }
  Descriptor ours;
  Descriptor peers;
};

/// What one recvmsg() gives.
struct Received {
  std::string bytes;
  std::vector<Descriptor> descriptors;
};

Received receive(const Descriptor& socket) {
  Received received;
  received.bytes.resize(64);
  // Room for more descriptors than one.
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(4 * sizeof(int))> control{};
  iovec part{received.bytes.data(), received.bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  received.bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return received;
  for (std::size_t at = 0; at + CMSG_LEN(0) < header->cmsg_len; at += sizeof(int)) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header) + at, sizeof descriptor);
    received.descriptors.emplace_back(descriptor);
  }
  return received;
}

}  // namespace

TEST_CASE("formats: a descriptor comes with its bytes, and both sides have one") {
  const Ends ends;
  int pipe_ends[2];
  REQUIRE(pipe2(pipe_ends, O_CLOEXEC) == 0);
  const Descriptor read_end(pipe_ends[0]);
  const Descriptor write_end(pipe_ends[1]);
  REQUIRE(send_with_descriptor(ends.ours.get(), bytes_of(std::string("reply")), write_end.get()));
  const Received received = receive(ends.peers);
  CHECK(received.bytes == "reply");
  REQUIRE(received.descriptors.size() == 1);
  REQUIRE(write(received.descriptors[0].get(), "a", 1) == 1);
  REQUIRE(write(write_end.get(), "b", 1) == 1);
  std::array<char, 3> text{};
  REQUIRE(read(read_end.get(), text.data(), 2) == 2);
  CHECK(std::string(text.data()) == "ab");
}

TEST_CASE("formats: bytes without a descriptor come alone") {
  const Ends ends;
  REQUIRE(send_with_descriptor(ends.ours.get(), bytes_of(std::string("reply")), -1));
  const Received received = receive(ends.peers);
  CHECK(received.bytes == "reply");
  CHECK(received.descriptors.empty());
}

TEST_CASE("formats: what is sent to a peer that is gone is an error, and no signal") {
  Ends ends;
  ends.peers = Descriptor();
  // SIGPIPE would end this program.
  const auto sent = send_with_descriptor(ends.ours.get(), bytes_of(std::string("reply")), -1);
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == ErrorCode::io_error);
  CHECK(sent.error().message == "sendmsg: Broken pipe");
}

namespace {

/// In a process that may open few files and has no privilege, for which the kernel counts none: 0
/// when too many descriptors on their way are told apart, and can be sent once some are received.
int send_too_many() {
  const rlimit limit{40, 40};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
  if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) return 3;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 4;
  const auto send = [&] { return send_with_descriptor(ends[0], bytes_of(std::string("a")), 0); };
  auto sent = send();
  for (int i = 0; i < 1000 && sent; ++i) sent = send();
  if (sent || sent.error().code != ErrorCode::does_not_fit) return 5;
  std::array<char, 1> byte{};
  for (int i = 0; i < 20; ++i) {
    if (recv(ends[1], byte.data(), 1, 0) != 1) return 6;  // without room for it, it is closed
  }
  return send() ? 0 : 7;
}

}  // namespace

TEST_CASE("formats: descriptors that others have not received are told from a peer's end") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(send_too_many());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("formats: a peer that does not read is not waited for") {
  const Ends ends;
  const std::vector<std::byte> much(std::size_t{64} << 20);
  const auto sent = send_with_descriptor(ends.ours.get(), much, -1);
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == ErrorCode::io_error);
  CHECK(sent.error().message.starts_with("sendmsg: the socket took "));
  const auto again = send_with_descriptor(ends.ours.get(), much, -1);
  REQUIRE_FALSE(again);
  CHECK(again.error().message == "sendmsg: Resource temporarily unavailable");
}
