#include "formats/base/kernel/socket_send.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace batchwright {

Result<void> send_with_descriptor(int socket, std::span<const std::byte> bytes, int descriptor) {
  // sendmsg() reads the bytes only; its type is that of recvmsg(), too.
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof descriptor)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno == ETOOMANYREFS) {
    return Error{ErrorCode::does_not_fit,
                 "descriptors that nobody has received yet are as many as this user's processes "
                 "may have open (LimitNOFILE=)"};
  }
  if (sent < 0) return Error{ErrorCode::io_error, fmt::format("sendmsg: {}", std::strerror(errno))};
  if (static_cast<std::size_t>(sent) == bytes.size()) return {};
  return Error{ErrorCode::io_error,
               fmt::format("sendmsg: the socket took {} of {} bytes", sent, bytes.size())};
}

}  // namespace batchwright
