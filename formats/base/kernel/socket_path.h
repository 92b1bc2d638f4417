#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "formats/base/kernel/file_lock.h"
#include "formats/base/result.h"

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

struct ReleaseClaim {
  void operator()(const FileLock* lock) const noexcept;
};

/// The right to make sockets at a path, and beside it, that no other daemon has while this lives:
/// of several that are started at once one gets it. Null where the file system has no locks.
using SocketClaim = std::unique_ptr<const FileLock, ReleaseClaim>;

/// Takes the claim, a lock on the file `path`.lock, and makes room as clear_socket_path() does.
/// It ends after the sockets that it is for. Errors: as clear_socket_path().
Result<SocketClaim> claim_socket_path(const std::string& path);

/// The file of a socket, as it was bound.
class SocketFile {
 public:
  explicit SocketFile(std::string path);

  const std::string& path() const { return path_; }
  /// Whether the path still leads to this socket, and not to nothing or another daemon's.
  bool is_there() const;
  /// Removes it, unless another file has taken its place.
  void remove() const;

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;  ///< 0: there was no file.
};

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
