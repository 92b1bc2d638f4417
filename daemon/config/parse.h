#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "daemon/config/values.h"
#include "formats/formats.h"

namespace batchwright {

/// Reads a configuration. `name` stands for the file in messages.
/// `config` has what counts where the text says nothing.
/// Errors: bad_configuration, with every fault of the text, a line each:
///   NAME:LINE:COLUMN: KEY: found WHAT; allowed: WHAT
Result<Config> parse_config(std::string_view text, std::string_view name, Config config = {});

/// Whether it is a pipe or a terminal that was handed to this process, such as /dev/stdin: what has
/// been read of it cannot be read again, and to read it waits for a writer.
bool is_read_once(const std::filesystem::path& path);

/// The text of a configuration's file. Errors: bad_configuration: it cannot be read, is too large,
/// or is neither a regular file nor read once.
Result<std::string> config_text(const std::filesystem::path& path);

/// Where a configuration comes from, and what counts where its file says nothing.
struct ConfigSource {
  std::filesystem::path file = {};
  /// Where the sockets of clients and pages lie; empty: at their defaults.
  std::filesystem::path folder = {};
  /// With `folder`: the pages are at a free port of the loopback, too, below a path that no program
  /// can guess.
  bool private_page = false;
  Severity log_level = DaemonConfig().log_level;
};

/// Has the sockets whose places are the defaults lie in the source's folder.
void place_sockets(DaemonConfig& daemon, const ConfigSource& source);

/// The configuration of a file. Errors: bad_configuration, also when it cannot be read.
Result<Config> load_config(const ConfigSource& source);
inline Result<Config> load_config(const std::filesystem::path& file) {
  return load_config(ConfigSource{file});
}

}  // namespace batchwright
