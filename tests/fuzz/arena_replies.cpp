// What a daemon answers on the arena socket: bytes, with descriptors or none, and then its end is
// closed. The first byte says which descriptors come along.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "client/library/memory/arena_link.h"
#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

constexpr std::size_t kArenaBytes = 8192;

Descriptor arena(bool sealed) {
  Descriptor memory(memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  require(ftruncate(memory.get(), kArenaBytes) == 0, "an arena can be made");
  if (sealed) fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK);
  return memory;
}

/// Sends the bytes, and up to three descriptors with the first of them.
void answer(int socket, std::span<const std::byte> bytes, std::uint8_t choice) {
  static const std::array<Descriptor, 3> arenas = {arena(true), arena(false), arena(true)};
  const std::size_t count = choice % 4U;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(3 * sizeof(int))> control{};
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count != 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (std::size_t i = 0; i < count; ++i) {
      const int sent = arenas[(i + choice / 4) % 3].get();
      std::memcpy(CMSG_DATA(header) + i * sizeof sent, &sent, sizeof sent);
    }
  }
  if (!bytes.empty()) static_cast<void>(sendmsg(socket, &message, MSG_NOSIGNAL));
  shutdown(socket, SHUT_WR);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices input(data, size);
  const std::uint8_t choice = input.byte();
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "a pair of sockets");
  const Descriptor daemon(ends[1]);
  answer(daemon.get(), input.take(4096), choice);
  ArenaLink link(Descriptor{ends[0]}, SessionId{7});
  const auto mapped =
      link.fetch({1}, Deadline(std::chrono::seconds(10), std::chrono::steady_clock::now()));
  if (mapped) {
    const auto all = (*mapped)->part(0, kArenaBytes);
    if (all) touch(*all);
    require(!(*mapped)->part(1, kArenaBytes), "no more is mapped than there is");
  }
  return 0;
}
