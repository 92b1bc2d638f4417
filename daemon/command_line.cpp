#include "daemon/command_line.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

namespace batchwright {
namespace {

/// Returns what is allowed; CLI11's own bounds are floating-point numbers of 300 digits.
std::string check_process(const std::string& text) {
  // Nine digits fit an int, and the kernel's largest process number, 2^22, has seven.
  const bool number = !text.empty() && text.size() < 10 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  return number && text.find_first_not_of('0') != std::string::npos
             ? ""
             : fmt::format("found \"{}\"; allowed: the number of a process, 1 and up", text);
}

}  // namespace

std::variant<CommandLine, int> parse_command_line(int argc, const char* const* argv) {
  CommandLine call;
  CLI::App app("Plans, builds and serves batches of variable-length sequences.", "batchwrightd");
  app.set_version_flag("--version", "batchwrightd " BATCHWRIGHT_VERSION);
  auto* config = app.add_option("--config", call.config.file, "The configuration, a TOML file")
                     ->type_name("FILE");
  app.add_option("--folder", call.config.folder,
                 "Folder of the sockets of clients and pages, unless the configuration places them")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory)
      ->needs(config);
  app.add_flag("--check-config", call.check_config,
               "Read the configuration, check what it names (datasets, accounts, keys, folders), "
               "report its faults, and serve nothing")
      ->needs(config);
  app.add_option("--reload", call.reload,
                 "Have a running daemon read its configuration again, and wait for the result")
      ->type_name("PID")
      ->check(check_process)
      ->excludes(config);
  app.footer(
      "Exit codes: 0 done, 1 the work failed, 2 the call or its input is wrong.\n"
      "Example: batchwrightd --config /etc/batchwright/batchwrightd.toml --check-config");
  try {
    app.parse(argc, argv);
    // Either of the two will do, so neither can be ->required().
    if (call.config.file.empty() && !call.reload) throw CLI::RequiredError("--config or --reload");
  } catch (const CLI::ParseError& outcome) {
    return app.exit(outcome) == 0 ? kDone : kWrongInput;  // help and version come as "errors" of 0
  }
  return call;
}

int exit_code(ErrorCode code) { return exit_codes(code).daemon; }

}  // namespace batchwright
