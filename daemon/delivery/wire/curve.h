#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "formats/formats.h"

namespace batchwright {

/// Keys of the `tcp://` endpoints, each 40 characters of Z85.
struct ServerKeys {
  std::string secret_key;  ///< The daemon's. Empty: no encryption.
  /// Public keys of the clients that are let in; empty: any client that knows the daemon's public
  /// key.
  std::optional<std::set<std::string>> authorized;
};

/// Reads both files; an empty path stands for none. A key stands on a line of its own, # begins a
/// comment. The secret key's file is refused when others than its owner can read it.
/// Errors: bad_configuration, with the file and, for a list, the line.
Result<ServerKeys> load_server_keys(const std::filesystem::path& secret_key_file,
                                    const std::filesystem::path& authorized_keys_file);

}  // namespace batchwright
