#include "daemon/notify.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/support/notify_listener.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("daemon: systemd is told what it understands") {
  const NotifyListener systemd;
  notify_ready("serving 2 feeds");
  CHECK(systemd.heard() == "READY=1\nSTATUS=serving 2 feeds");
  notify_status("one line\nand another");
  CHECK(systemd.heard() == "STATUS=one line and another");
  notify_watchdog();
  CHECK(systemd.heard() == "WATCHDOG=1");
  notify_reloading();
  CHECK(systemd.heard().starts_with("RELOADING=1\nMONOTONIC_USEC="));
  notify_stopping();
  CHECK(systemd.heard() == "STOPPING=1");
}

TEST_CASE("daemon: systemd is told at an abstract socket, too") {
  const NotifyListener systemd("@batchwright-notify-" + std::to_string(getpid()));
  notify_ready("serving");
  CHECK(systemd.heard() == "READY=1\nSTATUS=serving");
}

TEST_CASE("daemon: without systemd nothing is told and nothing fails") {
  unsetenv("NOTIFY_SOCKET");
  notify_ready("");
  notify_stopping();
  SUBCASE("gone") { setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1); }
  SUBCASE("nonsense") { setenv("NOTIFY_SOCKET", "nonsense", 1); }
  SUBCASE("empty") { setenv("NOTIFY_SOCKET", "", 1); }
  SUBCASE("no name") { setenv("NOTIFY_SOCKET", "@", 1); }
  SUBCASE("too long") { setenv("NOTIFY_SOCKET", ("/" + std::string(200, 'x')).c_str(), 1); }
  notify_watchdog();
  unsetenv("NOTIFY_SOCKET");
}

TEST_CASE("daemon: the watchdog is fed twice as often as it must be") {
  unsetenv("WATCHDOG_PID");
  setenv("WATCHDOG_USEC", "3000000", 1);
  CHECK(watchdog_interval() == std::chrono::microseconds(1'500'000));
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  CHECK(watchdog_interval() == std::chrono::microseconds(1'500'000));
  setenv("WATCHDOG_PID", std::to_string(getppid()).c_str(), 1);
  CHECK_FALSE(watchdog_interval());
  unsetenv("WATCHDOG_PID");
  for (const char* none : {"0", "", "soon"}) {
    setenv("WATCHDOG_USEC", none, 1);
    CHECK_FALSE(watchdog_interval());
  }
  unsetenv("WATCHDOG_USEC");
  CHECK_FALSE(watchdog_interval());
}
