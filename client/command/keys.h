#pragma once

#include "client/command/commands.h"
#include "client/command/watch/event_stream.h"
#include "client/library/batchwright/client.hpp"

namespace batchwright {

/// The pair that the options name; a fresh one where only the daemon's key is given, and an empty
/// one without that. Errors: invalid_argument (the file cannot be read, or holds no key).
Result<KeyPair> own_keys(const KeyOptions& keys);

/// The same for a connection of the library.
Result<client::ConnectOptions> connect_options(const KeyOptions& keys);

}  // namespace batchwright
