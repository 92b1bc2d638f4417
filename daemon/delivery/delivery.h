#pragma once

// Front door of the room: clients, what they asked for, and the way of a batch to them.
// Everything here lives on the event loop; see README.md.

#include "daemon/delivery/feed/feed.h"  // FeedSettings, find_fitting_data, Feed
#include "daemon/delivery/server.h"     // sessions and the conversation
