#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "tests/support/temporary_folder.h"

namespace batchwright::test {

/// Listens as systemd does, for as long as it lives: NOTIFY_SOCKET names it.
class NotifyListener {
 public:
  NotifyListener() : NotifyListener(std::string()) {}
  /// `name`: an abstract one after an @; empty: a file of a folder of its own.
  explicit NotifyListener(std::string name)
      : descriptor_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    if (name.empty()) name = (folder_ / "notify").string();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (name.size() >= sizeof address.sun_path) throw std::runtime_error(name);
    std::memcpy(address.sun_path, name.c_str(), name.size());
    const bool abstract = name[0] == '@';
    if (abstract) address.sun_path[0] = '\0';
    const auto length = offsetof(sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1);
    if (bind(descriptor_, reinterpret_cast<const sockaddr*>(&address),
             static_cast<socklen_t>(length)) != 0) {
      throw std::runtime_error("bind " + name);
    }
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~NotifyListener() {
    unsetenv("NOTIFY_SOCKET");
    close(descriptor_);
  }
  NotifyListener(const NotifyListener&) = delete;
  NotifyListener& operator=(const NotifyListener&) = delete;

  /// The next message; "nothing" when none comes within this time.
  std::string heard(int milliseconds = 0) const {
    pollfd ready{descriptor_, POLLIN, 0};
    if (poll(&ready, 1, milliseconds) != 1) return "nothing";
    char buffer[1024];
    const ssize_t bytes = recv(descriptor_, buffer, sizeof buffer, 0);
    return bytes < 0 ? "nothing" : std::string(buffer, static_cast<std::size_t>(bytes));
  }

 private:
  TemporaryFolder folder_;
  int descriptor_;
};

}  // namespace batchwright::test
