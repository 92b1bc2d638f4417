#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>

#include "daemon/delivery/delivery.h"
#include "daemon/stats/stats.h"

namespace batchwright {

/// Every path that the HTTP endpoint answers, and how.
///
/// Lifetime: `loop`, `server`, and what `figures` refers to, outlive the endpoint that gets the
///   routes.
/// Threads: the routes are called on the event loop.
Routes make_routes(boost::asio::io_context& loop, std::function<StatsSource()> figures,
                   Server& server);

}  // namespace batchwright
