#include "daemon/notify.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

using namespace batchwright;

namespace {

/// Listens as systemd does, for as long as it lives.
class Listener {
 public:
  Listener() : folder_(make_folder()), descriptor_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    const std::string path = folder_ + "/notify";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~Listener() {
    unsetenv("NOTIFY_SOCKET");
    close(descriptor_);
    std::filesystem::remove_all(folder_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// The next message; a datagram on a Unix socket has arrived once it is sent.
  std::string heard() const {
    char buffer[512];
    const ssize_t bytes = recv(descriptor_, buffer, sizeof buffer, 0);
    return bytes < 0 ? "nothing" : std::string(buffer, static_cast<std::size_t>(bytes));
  }

 private:
  static std::string make_folder() {
    std::string folder = (std::filesystem::temp_directory_path() / "notify-XXXXXX").string();
    REQUIRE(mkdtemp(folder.data()) != nullptr);
    return folder;
  }

  std::string folder_;
  int descriptor_;
};

}  // namespace

TEST_CASE("daemon: systemd is told what it understands") {
  const Listener systemd;
  notify_ready("serving 2 feeds");
  CHECK(systemd.heard() == "READY=1\nSTATUS=serving 2 feeds");
  notify_status("one line\nand another");
  CHECK(systemd.heard() == "STATUS=one line and another");
  notify_watchdog();
  CHECK(systemd.heard() == "WATCHDOG=1");
  notify_stopping();
  CHECK(systemd.heard() == "STOPPING=1");
}

TEST_CASE("daemon: without systemd nothing is told and nothing fails") {
  unsetenv("NOTIFY_SOCKET");
  notify_ready("");
  notify_stopping();
  SUBCASE("gone") { setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1); }
  SUBCASE("nonsense") { setenv("NOTIFY_SOCKET", "nonsense", 1); }
  notify_watchdog();
  unsetenv("NOTIFY_SOCKET");
}

TEST_CASE("daemon: the watchdog is fed twice as often as it must be") {
  unsetenv("WATCHDOG_PID");
  setenv("WATCHDOG_USEC", "3000000", 1);
  CHECK(watchdog_interval() == std::chrono::microseconds(1'500'000));
  unsetenv("WATCHDOG_USEC");
  CHECK_FALSE(watchdog_interval());
}
