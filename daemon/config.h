#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/log.h"
#include "daemon/planning/planning.h"
#include "storage/storage.h"

namespace batchwright {

/// The table [daemon].
struct DaemonConfig {
  /// Where clients connect: "ipc://" and an absolute path. The arena's socket lies beside it.
  std::vector<std::string> endpoints{"ipc:///run/batchwright/batchwright.sock"};
  /// Numeric address and port of /stats and /healthz; empty: none. Port 0 is any free one.
  std::string stats = "127.0.0.1:9477";
  /// Ceiling for the arenas of all feeds together, in bytes. Range: 1 MiB and up.
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;
  /// Threads that copy sequences into batches. Range: 1 to 256.
  std::uint32_t assembly_threads = 2;
  /// Access to the sockets; clients need to read and write. Three octal digits.
  std::uint32_t socket_mode = 0660;
  /// Group that owns the sockets, name or number; empty: the daemon's own.
  std::string socket_group;
  /// Sessions at once; one more is refused. Range: 1 to 65536.
  std::uint32_t max_clients = 256;
  /// The least severe events that are logged.
  LogLevel log_level = LogLevel::info;

  friend bool operator==(const DaemonConfig&, const DaemonConfig&) = default;
};

/// One table [[feed]].
struct FeedConfig {
  /// What trainers subscribe to. Required, unique: 1 to 64 of A-Z a-z 0-9 _ . -
  std::string name;
  /// One LMDB environment or an ordered list of shards. Required.
  std::vector<std::filesystem::path> dataset;
  /// Batches that the arena holds. Range: 2 to 65536.
  std::uint32_t slots = 16;
  /// What happens when a record fails verification.
  OnCorrupt on_corrupt = OnCorrupt::stop;
  /// How often a record's CRC-32C is checked.
  VerifyRecords verify = VerifyRecords::once;
  /// Order of the first two dimensions of a tensor.
  Layout layout = Layout::batch_major;
  /// Written behind a row's real frames. Finite.
  double padding_value = 0.0;
  /// Batches that one subscription may hold unreleased; a larger wish is granted this much, and
  /// never more than half of `slots`. Range: 1 to 65536.
  std::uint32_t max_window = 8;
  /// Overwrites released slots, to find trainers that read too late. Costs a pass over the bytes.
  bool poison = false;
  /// The table [feed.plan].
  PlanSettings plan;
};

/// What the daemon is told, with every default beside its field. systemd/batchwrightd.toml
/// documents the file; rooms get plain values, never this.
struct Config {
  DaemonConfig daemon;
  std::vector<FeedConfig> feeds;  ///< At least one.
};

/// Reads a configuration. `name` stands for the file in messages.
/// Errors: bad_configuration, with every fault of the text, a line each:
///   NAME:LINE:COLUMN: KEY: found WHAT; allowed: WHAT
Result<Config> parse_config(std::string_view text, std::string_view name);

/// The same for a file. Errors: bad_configuration, also when it cannot be read.
Result<Config> load_config(const std::filesystem::path& path);

/// Every key that parse_config() knows, such as "daemon.memory" and "feed.plan.order".
std::vector<std::string> config_keys();

}  // namespace batchwright
