#include "daemon/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

namespace {

/// A variable that systemd sets; empty when it does not.
std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

/// sd_notify(3): one datagram to the socket that NOTIFY_SOCKET names, by its path or, behind an @,
/// by its abstract name. Failure is of no consequence: systemd sees that nothing came.
void notify(std::string_view state) {
  const std::string_view name = variable("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (name.size() < 2 || name.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, name.size());
  const bool abstract = name[0] == '@';
  if (abstract) address.sun_path[0] = '\0';
  // The end of a path is a zero byte; an abstract name ends with the address.
  const auto length = offsetof(sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1);
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  static_cast<void>(::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&address),
                             static_cast<socklen_t>(length)));
}

/// Line ends separate the parts of a state, so a status is one line.
std::string status_line(std::string status) {
  std::replace(status.begin(), status.end(), '\n', ' ');
  return "STATUS=" + status;
}

}  // namespace

void notify_ready(const std::string& status) { notify("READY=1\n" + status_line(status)); }

void notify_status(const std::string& status) { notify(status_line(status)); }

/// The time, too, so that systemd tells the READY=1 of this reload from one before it.
void notify_reloading() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t microseconds = std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
  notify("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(microseconds));
}

void notify_stopping() { notify("STOPPING=1"); }

void notify_watchdog() { notify("WATCHDOG=1"); }

std::optional<std::chrono::microseconds> watchdog_interval() {
  const auto limit = parse_whole<std::uint64_t>(variable("WATCHDOG_USEC"));
  if (!limit || *limit == 0) return std::nullopt;
  // A parent's watchdog is not this process's.
  const std::string_view whose = variable("WATCHDOG_PID");
  const auto own = static_cast<std::uint64_t>(::getpid());
  if (!whose.empty() && parse_whole<std::uint64_t>(whose) != own) return std::nullopt;
  // Half of it, as sd_watchdog_enabled(3) recommends: one late turn of the loop is no hang.
  return std::chrono::microseconds(*limit / 2);
}

}  // namespace batchwright
