#include "formats/base/kernel/socket_path.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "formats/base/kernel/descriptor.h"

namespace batchwright {
namespace {

/// Whether a process listens at `path`. One whose queue is full does, too, and is not waited for.
bool is_listened_to(const std::string& path) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  static_assert(sizeof where.sun_path == kMaxSocketPath + 1);
  path.copy(where.sun_path, kMaxSocketPath);
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0 ||
         errno == EAGAIN || errno == EINPROGRESS;
}

constexpr const char* kNameAnother =
    "name a socket in a folder of this user in the configuration, such as "
    "ipc:///run/user/UID/batchwright.sock, and give clients the same endpoint";

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Below /run folders are systemd's to make.
std::string who_makes(const std::string& folder) {
  if (!folder.starts_with("/run/")) return "make it, or name another";
  return fmt::format(
      "the unit batchwrightd.service makes it at the start of the service (RuntimeDirectory=); "
      "without it {}",
      kNameAnother);
}

}  // namespace

Result<void> check_socket_folder(const std::string& path) {
  if (path.size() > kMaxSocketPath) {
    return Error{ErrorCode::io_error,
                 fmt::format("{}: a socket's path has at most {} bytes, found {}", path,
                             kMaxSocketPath, path.size())};
  }
  const std::string folder = folder_of(path);
  struct stat status {};
  const bool there = ::stat(folder.c_str(), &status) == 0;
  if (!there && errno == ENOENT) {
    return Error{ErrorCode::io_error, fmt::format("{}: the folder {} does not exist; {}", path,
                                                  folder, who_makes(folder))};
  }
  if (!there) {
    return Error{ErrorCode::io_error, fmt::format("{}: {}", folder, std::strerror(errno))};
  }
  if (!S_ISDIR(status.st_mode)) {
    return Error{ErrorCode::io_error, fmt::format("{}: {} is no folder", path, folder)};
  }
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return Error{ErrorCode::io_error, fmt::format("{}: uid {} may not make a socket in {}; {}", path,
                                                ::geteuid(), folder, kNameAnother)};
}

Result<void> clear_socket_path(const std::string& path) {
  if (auto folder = check_socket_folder(path); !folder) return folder;
  struct stat status {};
  // lstat: a link is in the way itself, wherever it leads.
  if (::lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode)) {
    return Error{ErrorCode::already_exists,
                 fmt::format("{}: a file that is no socket is in the way", path)};
  }
  // bind() refuses a path that exists: a dead daemon's socket has to go, a living one's must not.
  if (is_listened_to(path)) {
    return Error{ErrorCode::already_exists, fmt::format("{}: another daemon answers there", path)};
  }
  // Its failure shows when the socket is bound, with a reason.
  ::unlink(path.c_str());
  return {};
}

void ReleaseClaim::operator()(const FileLock* lock) const noexcept {
  lock->remove();
  delete lock;
}

Result<SocketClaim> claim_socket_path(const std::string& path) {
  if (auto folder = check_socket_folder(path); !folder) return folder.error();
  auto lock = FileLock::take(path + ".lock", FileLock::Kind::exclusive);
  if (!lock && lock.error().code != ErrorCode::unsupported) return lock.error();
  if (lock && !*lock) {
    return Error{ErrorCode::already_exists,
                 fmt::format("{}: another daemon answers there, or is about to", path)};
  }
  SocketClaim claim(lock ? new FileLock(std::move(**lock)) : nullptr);
  if (auto cleared = clear_socket_path(path); !cleared) return cleared.error();
  return claim;
}

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
  struct stat status {};
  // The file itself, not what a link leads to: a link in its place is not our socket.
  if (::lstat(path_.c_str(), &status) != 0) return;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

bool SocketFile::is_there() const {
  struct stat status {};
  return inode_ != 0 && ::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ &&
         status.st_ino == inode_;
}

void SocketFile::remove() const {
  if (is_there()) ::unlink(path_.c_str());
}

Result<void> set_access(const std::string& path, const SocketAccess& access) {
  const auto failed = [&path](const char* call) {
    return Error{ErrorCode::io_error, fmt::format("{} {}: {}", call, path, std::strerror(errno))};
  };
  const auto not_a_member = [&] {
    return Error{ErrorCode::io_error,
                 fmt::format("{}: cannot be given to group {} (socket_group), of which the daemon "
                             "is no member; add SupplementaryGroups= to the unit",
                             path, *access.gid)};
  };
  // The group first: the mode must not open the socket to the daemon's own group in between.
  if (access.gid && ::chown(path.c_str(), static_cast<uid_t>(-1), *access.gid) != 0) {
    return errno == EPERM ? not_a_member() : failed("chown");
  }
  if (::chmod(path.c_str(), access.mode) != 0) return failed("chmod");
  return {};
}

// 0177 leaves 0600: connecting takes write permission, which the owner alone then has.
RestrictedUmask::RestrictedUmask() : before_(::umask(0177)) {}
RestrictedUmask::~RestrictedUmask() { ::umask(before_); }

}  // namespace batchwright
