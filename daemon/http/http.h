#pragma once

// Front door of the room: the HTTP endpoint, which serves any room's pages. See README.md.

#include "daemon/http/cached_response.h"  // a page kept for many readers
#include "daemon/http/host_names.h"       // which names of this machine the pages are asked for by
#include "daemon/http/http_server.h"      // the server, on loopback and Unix sockets
#include "daemon/http/listen_address.h"   // where it listens
#include "daemon/http/routes.h"           // what it answers
