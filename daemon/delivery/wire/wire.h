#pragma once

// Front door of the room: sockets, keys and descriptors, and who may connect. See README.md.

#include "daemon/delivery/wire/accept_guard.h"       // limits of connections
#include "daemon/delivery/wire/access.h"             // which users may subscribe
#include "daemon/delivery/wire/arena_socket.h"       // how a client gets the arena's descriptor
#include "daemon/delivery/wire/connection.h"         // what becomes of a connection's bytes
#include "daemon/delivery/wire/curve.h"              // keys
#include "daemon/delivery/wire/event_publisher.h"    // events for clients that listen
#include "daemon/delivery/wire/frame_socket.h"       // a ZeroMQ socket on the event loop
#include "daemon/delivery/wire/intake.h"             // limits of what a connection sends
#include "daemon/delivery/wire/listeners.h"          // all sockets for clients
#include "daemon/delivery/wire/router.h"             // messages from and to clients
#include "daemon/delivery/wire/zap_authenticator.h"  // ZAP
