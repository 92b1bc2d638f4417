#include "daemon/delivery/wire/connection.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>

#include "formats/formats.h"

namespace batchwright {
namespace {

/// The kernel's struct tcp_info, of which glibc's header has the beginning only.
struct LongTcpInfo {
  std::array<std::byte, 104> beginning;
  std::array<std::uint64_t, 2> pacing_rates;
  std::uint64_t bytes_acked;
  std::uint64_t bytes_received;
};
static_assert(offsetof(LongTcpInfo, bytes_acked) == 120);
constexpr int kTcpInfo = 11;  ///< TCP_INFO.

std::uint64_t cookie_of(int socket) {
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return ::getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

/// A descriptor of our own for the connection, so that it cannot become another's while it is
/// looked at; none where it has ended.
Descriptor hold(const Connection& connection) {
  if (connection.descriptor < 0 || connection.cookie == 0) return {};
  Descriptor own(::fcntl(connection.descriptor, F_DUPFD_CLOEXEC, 0));
  return own && cookie_of(own.get()) == connection.cookie ? std::move(own) : Descriptor();
}

}  // namespace

Connection connection_of(int descriptor) { return {descriptor, cookie_of(descriptor)}; }

std::optional<Traffic> traffic_of(const Connection& connection) {
  const Descriptor own = hold(connection);
  if (!own) return {};
  LongTcpInfo info{};
  socklen_t size = sizeof info;
  if (::getsockopt(own.get(), IPPROTO_TCP, kTcpInfo, &info, &size) != 0 || size < sizeof info) {
    return {};
  }
  int queued = 0;
  static_cast<void>(::ioctl(own.get(), SIOCOUTQ, &queued));
  return Traffic{info.bytes_acked, info.bytes_received, queued > 0};
}

void end(const Connection& connection) {
  if (const Descriptor own = hold(connection)) ::shutdown(own.get(), SHUT_RDWR);
}

}  // namespace batchwright
