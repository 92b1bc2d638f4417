#pragma once

// Front door of the room: the pool of a live feed and all that it decides. Pure: no I/O, no
// threads, no clock.

#include "daemon/live/events.h"         // what comes in, and what follows
#include "daemon/live/live_pool.h"      // LivePool
#include "daemon/live/replay/replay.h"  // logs with their results, as JSON
#include "daemon/live/settings.h"       // LiveSettings and their check
