#pragma once

#include <boost/json/value.hpp>

#include "client/command/top/memory.h"
#include "client/command/top/table.h"

namespace batchwright {

/// The clients of a feed, with the columns of the dashboard (daemon/stats/dashboard/clients.js).
/// Rates, steps and shares are those of the last seconds, as far as `memory` goes back.
TopTable client_table(const boost::json::value& feed, const TopMemory& memory);

}  // namespace batchwright
