#pragma once

// Front door of the room: every event that can be counted, and the endpoint that shows them.

#include "daemon/stats/counters.h"  // FeedCounters, one a feed
#include "daemon/stats/endpoint.h"  // HTTP on loopback
