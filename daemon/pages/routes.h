#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "daemon/delivery/delivery.h"
#include "daemon/http/http.h"
#include "daemon/stats/stats.h"

namespace batchwright {

/// Every path that the HTTP endpoint answers, and how.
///
/// Lifetime: `loop`, `server`, and what `figures` refers to, outlive the endpoint that gets the
///   routes.
/// Threads: the routes are called on the event loop.
/// `gone` names the paths of sockets that no longer exist.
Routes make_routes(boost::asio::io_context& loop, std::function<StatsSource()> figures,
                   Server& server, std::function<std::vector<std::string>()> gone);

}  // namespace batchwright
