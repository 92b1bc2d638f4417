#pragma once

#include <string>
#include <vector>

#include "daemon/http/http.h"
#include "daemon/stats/stats.h"

namespace batchwright {

inline constexpr const char* kPlainText = "text/plain; charset=utf-8";

/// What keeps the daemon from being ready: /readyz, /stats and /metrics have it from here. It is
/// ready once every feed has its first batches. It is not while a feed is absent, has failed, is
/// blocked by its file system, or cannot plan an epoch that a client waits for: trainers sent here
/// would get nothing. `gone`: files of sockets that are no longer this daemon's.
std::vector<NotReady> not_ready(const ServerStatus& server, const std::vector<std::string>& gone);

/// The answer of /readyz, and of /readyz?feed=NAME for that feed alone: 200, or 503 with a line for
/// each reason; 404 where no such feed is configured.
Reply readiness(const ServerStatus& server, const std::vector<std::string>& gone,
                const Target& target);

}  // namespace batchwright
