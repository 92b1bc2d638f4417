#pragma once

#include <string>
#include <vector>

#include "daemon/delivery/delivery.h"
#include "daemon/http/http.h"

namespace batchwright {

inline constexpr const char* kPlainText = "text/plain; charset=utf-8";

/// Ready once every feed has its first batches. The daemon is not ready while a feed has failed, is
/// blocked by its file system, or cannot plan an epoch that a client waits for: trainers sent here
/// would get nothing. `gone`: files of sockets that are no longer this daemon's.
Reply readiness(const Server& server, const std::vector<std::string>& gone);

}  // namespace batchwright
