#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/delivery/feed/feed_settings.h"
#include "formats/formats.h"
#include "storage/dataset/dataset.h"

namespace batchwright {

/// The severity that log_level names by this word: debug, info, warn or error.
constexpr std::optional<Severity> parse_log_level(std::string_view word) {
  if (word == "debug") return Severity::debug;
  if (word == "info") return Severity::info;
  if (word == "warn") return Severity::warning;
  if (word == "error") return Severity::error;
  return {};
}

/// What a line of the log is: a sentence, or a JSON object.
enum class LogFormat : std::uint8_t { text, json };

/// The keys of [daemon] that a reload takes up.
struct DaemonAdjustments {
  /// Users and groups, by name or number, of which a client over ipc:// must be one; both empty:
  /// every process that the socket's mode lets in may be a client.
  std::vector<std::string> allow_uids;
  std::vector<std::string> allow_gids;
  /// How long a queue keeps the batches of a client that is gone, for it to come back.
  std::chrono::milliseconds queue_grace{10'000};
  /// How long the clients of a feed whose data are missing, or have failed, wait for it to come
  /// back; 0: they are refused at once.
  std::chrono::milliseconds feed_grace{60'000};
  /// The least severe events that are logged.
  Severity log_level = Severity::info;
  /// What a line of the log is: a sentence, or a JSON object.
  LogFormat log_format = LogFormat::text;

  friend bool operator==(const DaemonAdjustments&, const DaemonAdjustments&) = default;
};

/// The table [daemon].
struct DaemonConfig : DaemonAdjustments {
  /// Where clients connect: "ipc://" and an absolute path, the arena's socket lying beside it; or
  /// "tcp://", a numeric address or *, and a port.
  std::vector<std::string> endpoints{"ipc:///run/batchwright/batchwright.sock"};
  /// Endpoint of the PUB socket for events; "auto": beside the first ipc:// endpoint, if there is
  /// one; empty: none.
  std::string events = "auto";
  /// Where the HTTP pages are: a numeric address and a port, port 0 being any free one, or
  /// "unix://" and an absolute path. Empty: nowhere.
  std::vector<std::string> stats{"127.0.0.1:9477"};
  /// Whether pages over TCP are below a path that is drawn at the start, for those who know it. No
  /// key: place_sockets() sets it.
  bool private_pages = false;
  /// Names by which the pages may be asked for over TCP, beside localhost, numeric addresses and
  /// this machine's own.
  std::vector<std::string> stats_hosts;
  /// Ceiling for the arenas of all feeds together, in bytes.
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;
  /// Threads that copy sequences into batches.
  std::uint32_t assembly_threads = 2;
  /// The way by which they copy: "auto" for the fastest on this machine, or a name of copy_ways().
  std::string assembly_copy = "auto";
  /// Added to the process's nice value for threads that assemble and read ahead.
  std::uint32_t nice = 0;
  /// The processors that these may use, as parse_processors() reads them; empty: all.
  std::string cpu_affinity;
  /// How the kernel's I/O scheduler ranks their reads.
  IoPriority io_priority = IoPriority::normal;
  /// Share of a processor that each assembly thread takes at most.
  double assembly_share = 1.0;
  /// Access to the sockets; clients need to read and write.
  std::uint32_t socket_mode = 0660;
  /// Group that owns the sockets, name or number; empty: the daemon's own.
  std::string socket_group;
  /// Secret CURVE key of tcp:// endpoints, as `batchwright keygen` writes it; empty: none.
  std::filesystem::path curve_secret_key_file;
  /// Public keys of the clients that may connect over tcp://, one a line. Empty: every client
  /// that knows the daemon's public key may.
  std::filesystem::path authorized_keys_file;
  /// Allows tcp:// without keys: every program that reaches the port may read the data.
  bool insecure = false;
  /// Sessions that subscribe, at once; one more is refused.
  std::uint32_t max_clients = 256;
  /// Sessions that push into live feeds, beside those.
  std::uint32_t max_producers = 1024;

  friend bool operator==(const DaemonConfig&, const DaemonConfig&) = default;
};

/// One table [[feed]].
struct FeedConfig {
  /// One LMDB environment or an ordered list of shards. Required.
  std::vector<std::filesystem::path> dataset;
  /// Whether readers take a slot in the dataset's lock.mdb: on or off.
  Locking lock = Locking::on;
  /// How often a record's CRC-32C is checked.
  VerifyRecords verify = VerifyRecords::once;
  /// Which file feed.plan.order_file is, as load_config() found it: a reload of the same settings
  /// opens the feed again where it is another one. Empty: there is none. No key.
  std::string order_file_state;
  /// How the delivery room serves it: the other keys, and [daemon]'s queue_grace.
  FeedSettings served;
};

/// The daemon's configuration, with every default beside its field. systemd/batchwrightd.toml
/// documents the file; what each key allows is in its row (keys.h). Rooms get plain values, never
/// this.
struct Config {
  DaemonConfig daemon;
  std::vector<FeedConfig> feeds;  ///< At least one.
};

}  // namespace batchwright
