#include "memory.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

namespace edge {

Memory memory_of(pid_t process) {
  Memory memory;
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);  // "RssAnon:      1234 kB"
    std::string name;
    std::size_t kib = 0;
    if (!(words >> name >> kib)) continue;
    if (name == "RssAnon:") memory.own_bytes = kib * 1024;
    if (name == "RssShmem:") memory.shared_bytes = kib * 1024;
    if (name == "RssFile:") memory.file_bytes = kib * 1024;
  }
  return memory;
}

std::optional<pid_t> listener_at(const std::string& endpoint) {
  constexpr std::string_view kScheme = "ipc://";
  sockaddr_un address{};
  if (!endpoint.starts_with(kScheme)) return std::nullopt;
  address.sun_family = AF_UNIX;
  endpoint.copy(address.sun_path, sizeof address.sun_path - 1, kScheme.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ucred listener{};
  socklen_t size = sizeof listener;
  const bool known =
      ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &listener, &size) == 0;
  ::close(socket);
  return known ? std::optional(listener.pid) : std::nullopt;
}

}  // namespace edge
