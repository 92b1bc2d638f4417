#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "daemon/config/config.h"

namespace batchwright {

/// A configuration as it was read, once: it may come from a pipe.
struct JobConfig {
  std::filesystem::path file;
  std::string text;
  Config config;
};

/// Errors: those of config_text() and parse_config().
Result<JobConfig> read_job(const std::filesystem::path& file);

/// Where the daemon of a configuration listens, and what its users agree by.
struct DaemonPlace {
  ConfigSource source;
  std::string endpoint;         ///< ipc://
  std::filesystem::path locks;  ///< What the names of its lock files begin with.
  /// Of the configuration's text, and of where the paths in it lead to from here.
  std::uint64_t content = 0;
  std::vector<std::string> feeds;
  /// The text, where the daemon cannot read it again: it gets a file of its own.
  std::optional<std::string> own_text;
  std::string name;  ///< Unlike that of any other daemon of this host.
  std::string note;  ///< Why the folder is not where the environment says; empty: it is.

  std::string socket() const;
};

/// Where the configuration has no endpoints of its own the daemon gets a folder that is private to
/// content, user and Slurm job: in $XDG_RUNTIME_DIR, or in /tmp, as always within a Slurm job,
/// whose nodes have that folder only as long as its user is logged in. The folder is not made.
/// Errors: bad_configuration: no ipc:// endpoint, or one that is too long.
Result<DaemonPlace> place_daemon(const JobConfig& job);

/// A folder that is this user's alone; it is made where there is none.
/// Errors: io_error: it cannot be made, or is another user's.
Result<void> make_private(const std::filesystem::path& folder);

/// Whether the process that listens at a socket may be believed: it is of this user, of root, or of
/// the owner of the socket's folder, if no one else may write to that.
/// False where none can be asked at this moment.
/// Errors: io_error, with the user of the process and what is allowed.
Result<bool> check_listener(const std::string& socket);

}  // namespace batchwright
