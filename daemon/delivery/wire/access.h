#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// The process at the other end of a Unix socket, by the kernel's account (SO_PEERCRED): its user
/// and group when it connected. Supplementary groups do not show.
struct PeerCredentials {
  uid_t uid = 0;
  gid_t gid = 0;

  friend bool operator==(const PeerCredentials&, const PeerCredentials&) = default;
};

/// The credentials in the address of a peer on an `ipc://` endpoint: `NAME:UID:GID:PID`. Empty for
/// any other.
std::optional<PeerCredentials> credentials_of(std::string_view peer_address);

/// The credentials of a connected Unix socket's peer.
std::optional<PeerCredentials> credentials_of(int socket);

/// The users and groups that may be clients on this machine. Empty: any that the sockets' mode lets
/// in.
struct AllowList {
  std::set<uid_t> uids;
  std::set<gid_t> gids;

  /// Errors: invalid_argument, naming the process and those that are allowed.
  Result<void> check(const std::optional<PeerCredentials>& peer) const;
};

}  // namespace batchwright
