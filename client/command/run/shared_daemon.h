#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/command/run/file_lock.h"
#include "daemon/config/config.h"

namespace batchwright {

/// Where the daemon of a configuration listens, and what its users agree by.
struct DaemonPlace {
  ConfigSource source;
  std::string endpoint;         ///< ipc://
  std::filesystem::path locks;  ///< What the names of its lock files begin with.
  std::uint64_t content = 0;    ///< Of the configuration's text.
  std::vector<std::string> feeds;
};

/// Reads the configuration. Where it has no endpoints of its own the daemon gets a folder that is
/// private to configuration, user and Slurm job, in $XDG_RUNTIME_DIR or /tmp; it is made.
/// Errors: those of load_config(); bad_configuration: no ipc:// endpoint; io_error: the folder
/// cannot be made, or is another user's.
Result<DaemonPlace> place_daemon(const std::filesystem::path& config);

/// One daemon for all who run something with a configuration on this host.
///
/// The first of them owns it: it starts the daemon as its child, starts it again should it die, and
/// stops it when it is the last one there. When the owner ends first it waits for the others; when
/// it is killed, another becomes the owner. What they agree by are locks on two files, which the
/// kernel drops with the process that has them.
/// Threads: one.
class SharedDaemon {
 public:
  /// Joins, and waits for an owner that is just leaving. Nothing runs before tend() is called.
  /// Errors: io_error; not_found: the folder has just gone with its last user, and place_daemon()
  /// makes it anew; already_exists: a daemon of another configuration listens there.
  static Result<SharedDaemon> join(DaemonPlace place, std::string program);

  /// Does what is due: becomes the owner where there is none, starts the daemon where it is not.
  /// Errors: those of starting it.
  Result<void> tend();

  /// The daemon's process, where this one owns it.
  std::optional<pid_t> child() const { return child_; }
  /// The child has ended, with this status of waitpid(). Errors: bad_configuration: it never
  /// listened, or says that it will not, and its log says why.
  Result<void> ended(int status);

  /// Whether clients can connect. Errors: not_found, naming the feed that a daemon lacks which no
  /// run has started; io_error: its socket may not be used.
  Result<bool> ready();

  /// Nothing is run here any more. Returns whether others use the daemon that this one owns, and
  /// it has to be tended until they do not.
  Result<bool> leave();
  /// Removes the files, where leave() found no one else. The child is to have ended: those who come
  /// wait at these files until then.
  void remove_files();

  const DaemonPlace& place() const { return place_; }

 private:
  SharedDaemon(DaemonPlace place, std::string program)
      : place_(std::move(place)), program_(std::move(program)) {}

  std::filesystem::path users_file() const { return place_.locks.string() + ".users"; }
  std::filesystem::path owner_file() const { return place_.locks.string() + ".owner"; }
  std::string mark() const;
  Result<void> try_to_own();
  Result<void> start();

  DaemonPlace place_;
  std::string program_;
  std::optional<FileLock> user_;   // shared while something runs, exclusive at the end
  std::optional<FileLock> owner_;  // while the daemon is this one's
  std::optional<pid_t> child_;
  std::chrono::steady_clock::time_point started_{};
  bool was_ready_ = false;
  std::optional<std::chrono::steady_clock::time_point> took_over_;  // from an owner that was killed
  bool foreign_ = false;  // a daemon listens that no run has started, such as the system's
};

}  // namespace batchwright
