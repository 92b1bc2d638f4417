#pragma once

// Front door of the room: a TOML file in, plain values out. No threads; reads the file it is given.

#include "daemon/config/build_commit.h"  // what the programs were built from
#include "daemon/config/changes.h"       // what a new configuration asks of a running daemon
#include "daemon/config/parse.h"         // from a text to a Config
#include "daemon/config/paths.h"         // where the files lie that it names
#include "daemon/config/values.h"        // Config, with every default
