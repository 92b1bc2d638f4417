#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

#include "formats/formats.h"

namespace batchwright {

/// Longest path of a Unix socket that the kernel takes.
inline constexpr std::size_t kMaxSocketPath = 107;

/// The mode and the group of the sockets' files.
struct SocketAccess {
  unsigned mode = 0660;
  std::optional<unsigned> gid;  ///< Empty: as the daemon's.
};

/// Whether a socket can be made at `path`. Errors: io_error (its folder is missing, or this user
/// may not write to it; the path is too long), with what to do.
Result<void> check_socket_folder(const std::string& path);

/// Makes room for a socket at `path`: removes one that a killed daemon left.
/// Errors: io_error (those of check_socket_folder()), already_exists (a daemon answers there, or
/// the file is no socket and so none of ours).
Result<void> clear_socket_path(const std::string& path);

/// Opens a socket's file to others. Errors: io_error.
Result<void> set_access(const std::string& path, const SocketAccess& access);

/// Sockets made while it lives are the daemon's alone, until set_access() opens them to others:
/// a client that connects in between would stay connected.
class RestrictedUmask {
 public:
  RestrictedUmask();
  ~RestrictedUmask();
  RestrictedUmask(const RestrictedUmask&) = delete;
  RestrictedUmask& operator=(const RestrictedUmask&) = delete;

 private:
  mode_t before_;
};

}  // namespace batchwright
