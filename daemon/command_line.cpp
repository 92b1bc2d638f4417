#include "daemon/command_line.h"

#include <fmt/core.h>
#include <getopt.h>

#include <array>
#include <cstdio>
#include <string>
#include <system_error>

namespace batchwright {
namespace {

constexpr const char* kHelp =
    R"(Plans, builds and serves batches of variable-length sequences.

Usage: batchwrightd --config FILE [--folder DIR] [--check-config]
       batchwrightd --reload PID

  --config FILE    The configuration, a TOML file
  --folder DIR     Folder of the sockets of clients and pages, unless the configuration places them
  --check-config   Read the configuration, check what it names (datasets, accounts, keys, folders),
                   report its faults, and serve nothing
  --reload PID     Have a running daemon read its configuration again, and wait for the result
  -h, --help       Print this text and exit
  --version        Print the version and exit

Exit codes: 0 done, 1 the work failed, 2 the call or its input is wrong.
Example: batchwrightd --config /etc/batchwright/batchwrightd.toml --check-config
)";

enum Option : int { kHelpOption = 'h', kVersion = 256, kConfig, kFolder, kCheck, kReload };

constexpr std::array kOptions = {option{"help", no_argument, nullptr, kHelpOption},
                                 option{"version", no_argument, nullptr, kVersion},
                                 option{"config", required_argument, nullptr, kConfig},
                                 option{"folder", required_argument, nullptr, kFolder},
                                 option{"check-config", no_argument, nullptr, kCheck},
                                 option{"reload", required_argument, nullptr, kReload},
                                 option{}};

int wrong_call(std::string_view why) {
  fmt::print(stderr, "batchwrightd: {}; --help lists what is allowed\n", why);
  return kWrongInput;
}

/// Nothing if the option, which is written as `given`, is a good one.
std::optional<int> take_option(int which, std::string_view given, CommandLine& call) {
  switch (which) {
    case kHelpOption: fmt::print("{}", kHelp); return kDone;
    case kVersion: fmt::print("batchwrightd " BATCHWRIGHT_VERSION "\n"); return kDone;
    case kConfig:
      if (!call.config.file.empty()) return wrong_call("--config: found two, allowed: one");
      call.config.file = optarg;
      return {};
    case kFolder: {
      std::error_code ignored;
      call.config.folder = optarg;
      if (std::filesystem::is_directory(call.config.folder, ignored)) return {};
      return wrong_call(
          fmt::format("--folder: found \"{}\"; allowed: a folder that is there", optarg));
    }
    case kCheck: call.check_config = true; return {};
    case kReload: {
      constexpr int kMostProcesses = 1 << 22;  // the kernel's limit
      const auto number = parse_whole<unsigned>(optarg);
      call.reload = static_cast<int>(number.value_or(0));
      if (number && *number > 0 && *number <= kMostProcesses) return {};
      return wrong_call(fmt::format(
          "--reload: found \"{}\"; allowed: the number of a process, 1 and up", optarg));
    }
    case ':': return wrong_call(fmt::format("{} takes a value", given));
    default: return wrong_call(fmt::format("found {}, which is no option", given));
  }
}

}  // namespace

std::variant<CommandLine, int> parse_command_line(int argc, const char* const* argv) {
  CommandLine call;
  // '+': words stay in their order, so that none is written to; ':': getopt says nothing of its
  // own.
  auto* const words = const_cast<char* const*>(argv);
  optind = 0;
  for (int at = 1;; at = optind) {
    const int which = getopt_long(argc, words, "+:h", kOptions.data(), nullptr);
    if (which == -1) break;
    if (const auto code = take_option(which, argv[at], call)) return *code;
  }
  if (optind < argc) return wrong_call(fmt::format("found {}, which is no option", argv[optind]));
  const bool serves = !call.config.file.empty();
  if (serves && call.reload) return wrong_call("found --config and --reload; allowed: one of them");
  if (!serves && !call.reload) return wrong_call("found neither --config nor --reload");
  if (!serves && (call.check_config || !call.config.folder.empty())) {
    return wrong_call("--folder and --check-config take --config");
  }
  return call;
}

int exit_code(ErrorCode code) { return exit_codes(code).daemon; }

}  // namespace batchwright
