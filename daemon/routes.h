#pragma once

#include <functional>

#include "daemon/delivery/delivery.h"
#include "daemon/stats/stats.h"

namespace batchwright {

/// Every path that the HTTP endpoint answers, and how.
///
/// Lifetime: `server`, and what `figures` refers to, outlive the endpoint that gets the routes.
/// Threads: the routes are called on the event loop.
Routes make_routes(std::function<StatsSource()> figures, Server& server);

}  // namespace batchwright
