#include "daemon/command_line.h"

#include <CLI/CLI.hpp>

namespace batchwright {

std::variant<CommandLine, int> parse_command_line(int argc, const char* const* argv) {
  CommandLine call;
  CLI::App app("Plans, builds and serves batches of variable-length sequences.", "batchwrightd");
  app.set_version_flag("--version", "batchwrightd " BATCHWRIGHT_VERSION);
  app.add_option("--config", call.config, "The configuration, a TOML file")
      ->required()
      ->type_name("FILE");
  app.add_flag("--check-config", call.check_config,
               "Read the configuration, say what is wrong with it, and serve nothing");
  app.footer(
      "Exit codes: 0 done, 1 the work failed, 2 the call or its input is wrong.\n"
      "Example: batchwrightd --config /etc/batchwright/batchwrightd.toml --check-config");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& outcome) {
    return app.exit(outcome) == 0 ? 0 : 2;  // help and version come as "errors" of 0
  }
  return call;
}

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
    case ErrorCode::store_unavailable:
    case ErrorCode::invalid_argument:
    case ErrorCode::bad_configuration:
    case ErrorCode::schema_mismatch:
    case ErrorCode::unsupported_version:
    case ErrorCode::does_not_fit:
    case ErrorCode::infeasible: return 2;
    default: return 1;
  }
}

}  // namespace batchwright
