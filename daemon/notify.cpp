#include "daemon/notify.h"

#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace batchwright {

namespace {

// Failure is of no consequence here: systemd sees that nothing came.
// 0: NOTIFY_SOCKET stays in the environment, for the messages to come.
void notify(const std::string& state) { static_cast<void>(sd_notify(0, state.c_str())); }

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
  std::uint64_t limit = 0;
  if (sd_watchdog_enabled(0, &limit) <= 0) return std::nullopt;
  // Half of it, as sd_watchdog_enabled(3) recommends: one late turn of the loop is no hang.
  return std::chrono::microseconds(limit / 2);
}

}  // namespace batchwright
