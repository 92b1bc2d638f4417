#pragma once

#include <filesystem>
#include <optional>
#include <variant>

#include "daemon/config/config.h"
#include "formats/formats.h"

namespace batchwright {

/// The task given on the command line.
struct CommandLine {
  ConfigSource config;  ///< Its file is empty with `reload` only.
  bool check_config = false;
  bool for_run = false;       ///< It is checked as `batchwright run` will use it.
  std::optional<int> reload;  ///< The daemon's process number.
};

/// The call, or the exit code where there is nothing left to do: 0 after --help and --version,
/// 2 for a wrong call, which has been reported on standard error. Threads: one at a time.
std::variant<CommandLine, int> parse_command_line(int argc, const char* const* argv);

/// The exit code of an error: 2 for what no retry can mend, the call or the configuration, else 1.
/// A supervisor starts a daemon again after 1, and leaves it after 2.
int exit_code(ErrorCode code);

}  // namespace batchwright
