#pragma once

#include <string>

#include "client/command/commands.h"
#include "client/library/batchwright/client.hpp"
#include "formats/formats.h"

namespace batchwright {

/// A pair of CURVE keys, 40 characters of Z85 each.
struct KeyPair {
  std::string public_key;
  std::string secret_key;
};

// Defined in watch/event_stream.cpp, the command's only code that knows ZeroMQ.
/// A fresh pair. Errors: unsupported (ZeroMQ was built without CURVE).
Result<KeyPair> make_key_pair();
/// The pair that a secret key is of. Errors: invalid_argument.
Result<KeyPair> pair_of(const std::string& secret_key);

/// The pair that the options name; a fresh one where only the daemon's key is given, and an empty
/// one without that. Errors: invalid_argument (the file cannot be read, or holds no key).
Result<KeyPair> own_keys(const KeyOptions& keys);

/// The same for a connection of the library.
Result<client::ConnectOptions> connect_options(const KeyOptions& keys);

}  // namespace batchwright
