#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// Who is at the other end of a Unix socket, as the kernel says (SO_PEERCRED): user and group of
/// the process when it connected. Supplementary groups do not show.
struct PeerCredentials {
  uid_t uid = 0;
  gid_t gid = 0;

  friend bool operator==(const PeerCredentials&, const PeerCredentials&) = default;
};

/// Of the address of a peer on an `ipc://` endpoint: `NAME:UID:GID:PID`. Empty for any other.
std::optional<PeerCredentials> credentials_of(std::string_view peer_address);

/// The same for a connected Unix socket.
std::optional<PeerCredentials> credentials_of(int socket);

/// Who may be a client on this machine. Empty: whom the sockets' mode lets in.
struct AllowList {
  std::set<uid_t> uids;
  std::set<gid_t> gids;

  /// Errors: invalid_argument, with who asks and who is allowed.
  Result<void> check(const std::optional<PeerCredentials>& peer) const;
};

}  // namespace batchwright
