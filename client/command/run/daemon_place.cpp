#include "client/command/run/daemon_place.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace batchwright {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostSocketBytes = 100;

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// What keeps a folder from being the place of sockets; empty: nothing.
std::string fault_of_runtime(const fs::path& runtime, const std::string& name) {
  struct stat there = {};
  if (!runtime.is_absolute()) return "is no absolute path";
  if (::stat(runtime.c_str(), &there) != 0) {
    return fmt::format("cannot be used: {}", std::strerror(errno));
  }
  if (!S_ISDIR(there.st_mode)) return "is no folder";
  if (there.st_uid != ::geteuid()) return fmt::format("is a folder of user {}", there.st_uid);
  if (::access(runtime.c_str(), W_OK | X_OK) != 0) return "is a folder that may not be written to";
  const std::size_t bytes = (runtime / name / "batchwright.sock").string().size();
  if (bytes <= kMostSocketBytes) return {};
  return fmt::format("is too long: a socket in it would have a path of {} bytes, and may have {}",
                     bytes, kMostSocketBytes);
}

void place_in_private_folder(DaemonPlace& place, const std::string& name) {
  const std::string job = environment("SLURM_JOB_ID");
  place.source.folder = fmt::format("/tmp/{}-{}", name, ::geteuid());
  const fs::path runtime = environment("XDG_RUNTIME_DIR");
  if (!job.empty() || runtime.empty()) return;
  const std::string fault = fault_of_runtime(runtime, name);
  if (fault.empty()) {
    place.source.folder = runtime / name;
  } else {
    place.note = fmt::format("XDG_RUNTIME_DIR={} {}; the daemon's sockets are in {}",
                             runtime.string(), fault, place.source.folder.string());
  }
}

Error bad_place(const fs::path& file, std::string what) {
  return {ErrorCode::bad_configuration, fmt::format("{}: {}", file.string(), what)};
}

}  // namespace

Result<JobConfig> read_job(const fs::path& file) {
  auto text = config_text(file);
  if (!text) return text.error();
  auto config = parse_config(*text, file.string());
  if (!config) return config.error();
  return JobConfig{file, std::move(*text), std::move(*config)};
}

std::string DaemonPlace::socket() const { return endpoint.substr(kIpc.size()); }

Result<DaemonPlace> place_daemon(const JobConfig& job) {
  DaemonPlace place;
  place.source.file = job.file;
  place.content = fnv1a(kFnv1aBasis, job.text);
  for (const fs::path& each : named_paths(job.config)) {
    // With its zero byte, so that no two lists of paths look alike.
    const std::string path = resolved(each).string();
    place.content = fnv1a(place.content, {path.c_str(), path.size() + 1});
  }
  if (is_read_once(job.file)) place.own_text = job.text;
  for (const FeedConfig& feed : job.config.feeds) place.feeds.push_back(feed.served.name);
  const std::string id = environment("SLURM_JOB_ID");
  const std::string name =
      fmt::format("{}{}{:08x}", id, id.empty() ? "" : "-", place.content >> 32);
  place.name = fmt::format("{}-{}", name, ::geteuid());
  const std::vector<std::string>& given = job.config.daemon.endpoints;
  if (given == DaemonConfig().endpoints) {
    place_in_private_folder(place, "batchwright-" + name);
    DaemonConfig placed;
    place_sockets(placed, place.source);
    place.endpoint = placed.endpoints.front();
    place.locks = place.source.folder / "run";
  } else {
    const auto local = std::find_if(given.begin(), given.end(),
                                    [](const std::string& each) { return each.starts_with(kIpc); });
    if (local == given.end()) {
      return bad_place(job.file,
                       fmt::format("daemon.endpoints: found {}; run needs one that begins "
                                   "with {}, or none, for one of its own",
                                   fmt::join(given, ", "), kIpc));
    }
    place.endpoint = *local;
    place.locks = place.socket();
  }
  if (place.socket().size() <= kMostSocketBytes) return place;
  return bad_place(job.file,
                   fmt::format("{}: more than the {} bytes that a socket's path may have; "
                               "name one in daemon.endpoints",
                               place.endpoint, kMostSocketBytes));
}

Result<void> make_private(const fs::path& folder) {
  std::error_code ignored;  // of those above it, which are another's as a rule
  fs::create_directories(folder.parent_path(), ignored);
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return Error{ErrorCode::io_error,
                 fmt::format("{}: mkdir: {}", folder.string(), std::strerror(errno))};
  }
  struct stat there = {};
  // In /tmp anyone may have made it, or a link in its place.
  const bool own = ::lstat(folder.c_str(), &there) == 0 && S_ISDIR(there.st_mode) &&
                   there.st_uid == ::geteuid() && (there.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  if (own) return {};
  return Error{
      ErrorCode::io_error,
      fmt::format("{}: it is not a folder of this user alone (mode 0700)", folder.string())};
}

Result<bool> check_listener(const std::string& socket) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  socket.copy(where.sun_path, sizeof where.sun_path - 1);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0 ||
      ::getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return false;
  }
  if (peer.uid == ::geteuid() || peer.uid == 0) return true;
  const fs::path folder = fs::path(socket).parent_path();
  struct stat status = {};
  const bool is_closed =
      ::stat(folder.c_str(), &status) == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (is_closed && status.st_uid == peer.uid) return true;
  return Error{ErrorCode::io_error,
               fmt::format("{}: the process that listens there is of user {}; allowed: user {}, "
                           "root, or the owner of a folder that no one else may write to",
                           socket, peer.uid, ::geteuid())};
}

}  // namespace batchwright
