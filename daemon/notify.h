#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace batchwright {

// Messages to systemd. Without NOTIFY_SOCKET in the environment each of these does nothing, and
// none fails: a daemon does its work with or without a listener. Threads: any.

/// Ready to serve; `status` is the line that `systemctl status` shows.
void notify_ready(const std::string& status);
void notify_status(const std::string& status);
void notify_stopping();
/// Tells systemd that a reload begins; notify_ready() must follow.
void notify_reloading();
/// Feeds the watchdog.
void notify_watchdog();

/// How often to feed the watchdog: half the time that systemd allows. Empty: there is no watchdog.
std::optional<std::chrono::microseconds> watchdog_interval();

}  // namespace batchwright
