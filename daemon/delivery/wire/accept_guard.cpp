#include "daemon/delivery/wire/accept_guard.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <climits>
#include <utility>

#include "daemon/delivery/wire/intake.h"
#include "formats/formats.h"

namespace batchwright {
namespace {

/// The state that accept4() below uses: it has no other way to this program's objects.
struct Door {
  std::atomic<int> remote_end = INT_MAX;
  std::atomic<int> local_end = INT_MAX;
  Mutex mutex;
  AcceptGuard* guard GUARDED_BY(mutex) = nullptr;
};

Door& door() {
  static Door* const kept = new Door;  // ZeroMQ's threads may outlive all statics
  return *kept;
}

bool is_local(int socket) {
  int domain = 0;
  socklen_t size = sizeof domain;
  return ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

/// Whether a connection that came through `listener` may have this descriptor.
bool may_have(int listener, int descriptor) {
  const Door& limits = door();
  if (descriptor < limits.remote_end.load(std::memory_order_relaxed)) return true;
  return descriptor < limits.local_end.load(std::memory_order_relaxed) && is_local(listener);
}

void tell_refusal() {
  const MutexLock lock(door().mutex);
  if (door().guard != nullptr) door().guard->refused();
}

/// The other end of a connection, for people.
std::string peer_text(int connection) {
  ucred process{};
  socklen_t size = sizeof process;
  if (is_local(connection)) {
    if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &process, &size) != 0) return "ipc";
    return fmt::format("process {} of user {}", process.pid, process.uid);
  }
  sockaddr_storage storage{};
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  size = sizeof storage;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getpeername(connection, address, &size) != 0 ||
      ::getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "tcp";
  }
  return fmt::format("{} port {}", host.data(), port.data());
}

}  // namespace

DescriptorShares shares_of(std::uint64_t descriptors) {
  const int all = static_cast<int>(std::min<std::uint64_t>(descriptors, INT_MAX));
  return {all - all / 4, all - std::min(all / 8, 64)};
}

AcceptGuard::AcceptGuard(boost::asio::io_context& loop, EventLog& log) : loop_(loop), log_(log) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const DescriptorShares shares = shares_of(limit.rlim_cur);
  door().remote_end = shares.remote;
  door().local_end = shares.local;
  const MutexLock lock(door().mutex);
  door().guard = this;
}

AcceptGuard::~AcceptGuard() {
  const MutexLock lock(door().mutex);
  if (door().guard == this) door().guard = nullptr;
}

void AcceptGuard::refused() {
  if (untold_.fetch_add(1) != 0) return;  // the first of them has posted
  boost::asio::post(loop_, [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) note();
  });
}

void AcceptGuard::note() {
  std::uint64_t count = untold_.exchange(0);
  if (count == 0) return;
  log_.note<Event::connection_refused>();
  while (--count > 0) log_.count(Event::connection_refused);
}

void AcceptGuard::tell_flood(int connection) {
  std::string peer = peer_text(connection);
  const MutexLock lock(door().mutex);
  if (door().guard != nullptr) door().guard->flooded(std::move(peer));
}

void AcceptGuard::flooded(std::string peer) {
  boost::asio::post(loop_, [this, peer = std::move(peer), alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) log_.note<Event::connection_flooded>(peer, kMostUnconsumed >> 20);
  });
}

}  // namespace batchwright

/// libzmq calls this instead of glibc's function, since a program's own symbols come first. Asio
/// calls accept(), and handles a lack of descriptors itself.
extern "C" __attribute__((visibility("default"))) int accept4(int listener, sockaddr* address,
                                                              socklen_t* size, int flags) {
  const int descriptor = static_cast<int>(::syscall(SYS_accept4, listener, address, size, flags));
  if (descriptor < 0) {
    // libzmq bears a full table of the system's, not one of this process.
    if (errno == EMFILE) errno = ENFILE;
    return -1;
  }
  if (batchwright::may_have(listener, descriptor)) {
    batchwright::count_intake(descriptor);
    return descriptor;
  }
  ::close(descriptor);
  batchwright::tell_refusal();
  errno = ECONNABORTED;
  return -1;
}
