#include "client/library/reach.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace batchwright {
namespace {

constexpr std::size_t kMostNameBytes = 16384;  // of what the system keeps of a user or a group

/// Names are looked up on threads of their own program's choosing: only the reentrant calls will
/// do.
std::string user_name(uid_t uid) {
  std::vector<char> room(kMostNameBytes);
  passwd entry{};
  passwd* found = nullptr;
  const bool known = getpwuid_r(uid, &entry, room.data(), room.size(), &found) == 0 && found;
  return known ? found->pw_name : std::to_string(uid);
}

std::string group_name(gid_t gid) {
  std::vector<char> room(kMostNameBytes);
  group entry{};
  group* found = nullptr;
  const bool known = getgrgid_r(gid, &entry, room.data(), room.size(), &found) == 0 && found;
  return known ? found->gr_name : std::to_string(gid);
}

std::string denied_user() {
  const uid_t uid = geteuid();
  return fmt::format("permission denied: uid {} ({})", uid, user_name(uid));
}

/// "0660 batchwright:batchwright", as far as it can be seen.
std::string rights_of(const std::string& path, std::string& group) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "whose mode cannot be seen";
  group = group_name(status.st_gid);
  return fmt::format("{:04o} {}:{}", status.st_mode & 07777U, user_name(status.st_uid), group);
}

bool may(const std::string& path, int what) {
  return ::faccessat(AT_FDCWD, path.c_str(), what, AT_EACCESS) == 0;
}

/// The first folder on the way that may not be searched; empty when there is none.
std::string closed_folder(const std::filesystem::path& path) {
  std::filesystem::path way;
  for (const auto& part : path.parent_path()) {
    way /= part;
    if (!may(way.string(), X_OK) && errno == EACCES) return way.string();
  }
  return {};
}

Error not_searched(const std::string& folder, const std::string& socket) {
  std::string group;
  const std::string rights = rights_of(folder, group);
  return {ErrorCode::io_error,
          fmt::format("{} may not search the folder {} ({}), in which the daemon's socket {} is "
                      "looked for; its owner can allow that, as by chmod o+x",
                      denied_user(), folder, rights, socket)};
}

Error not_written(const std::string& socket) {
  std::string group;
  const std::string rights = rights_of(socket, group);
  return {
      ErrorCode::io_error,
      fmt::format(
          "{} may not write to the daemon's socket {} ({}); join its group (usermod -aG {} {}, and "
          "log in again), or see socket_mode and socket_group of the daemon's configuration",
          denied_user(), socket, rights, group, user_name(geteuid()))};
}

}  // namespace

std::optional<Error> diagnose_endpoint(const std::string& endpoint) {
  if (!endpoint.starts_with(kIpc)) return std::nullopt;
  const std::string socket = endpoint.substr(kIpc.size());
  if (socket.empty() || socket.front() == '@') return std::nullopt;  // no file
  const std::filesystem::path path(socket);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  if (path.is_relative() && !may(folder, F_OK) && errno == ENOENT) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("endpoint \"{}\": {} is a relative path, and there is no folder {} "
                             "here; an absolute one has three slashes: ipc:///{}",
                             endpoint, socket, folder, socket)};
  }
  if (may(socket, W_OK) || errno != EACCES) return std::nullopt;
  const std::string closed = closed_folder(path);
  return closed.empty() ? not_written(socket) : not_searched(closed, socket);
}

Result<void> room_for_descriptors(std::size_t count) {
  std::vector<Descriptor> tried;
  for (std::size_t i = 0; i < count; ++i) {
    tried.emplace_back(::open("/", O_PATH | O_CLOEXEC));
    if (tried.back()) continue;
    const bool full = errno == ENFILE;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return Error{
        ErrorCode::io_error,
        full ? "the system has no file descriptors left (fs.file-max)"
             : fmt::format("no file descriptors are left: a connection takes up to {}, and this "
                           "process may have {} (ulimit -n); close connections that are not needed",
                           count, limit.rlim_cur)};
  }
  return {};
}

}  // namespace batchwright
