#pragma once

#include <filesystem>
#include <variant>

#include "formats/formats.h"

namespace batchwright {

/// What the program is called to do.
struct CommandLine {
  std::filesystem::path config;
  bool check_config = false;
};

/// The call, or the exit code where there is nothing left to do: 0 after --help and --version,
/// 2 for a wrong call, which has been told about on standard error.
std::variant<CommandLine, int> parse_command_line(int argc, const char* const* argv);

/// The exit code of an error at the start: 2 when the call or its input is wrong, so that trying
/// again will not help, else 1.
int exit_code(ErrorCode code);

}  // namespace batchwright
