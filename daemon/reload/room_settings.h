#pragma once

#include <cstdint>
#include <string>

#include "daemon/config/config.h"
#include "daemon/delivery/delivery.h"

namespace batchwright {

// The configuration as plain values for the rooms, which never see it. Threads: any.

/// Asks the system for accounts, which may take long.
/// Errors: bad_configuration (accounts that are not there).
Result<AllowList> allow_list(const DaemonConfig& config);

/// Errors: bad_configuration (accounts that are not there, files of keys).
Result<ServerSettings> server_settings(const DaemonConfig& config);

/// File descriptors that as many clients as are allowed take: producers come to live feeds alone.
std::uint64_t client_descriptors(const Config& config);

/// The error with the feed's name before it.
Error in_feed(const std::string& name, const Error& error);

}  // namespace batchwright
