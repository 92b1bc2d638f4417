#include "daemon/command_line.h"

#include <fmt/core.h>
#include <getopt.h>

#include <array>
#include <cstdio>
#include <set>
#include <string>
#include <system_error>

namespace batchwright {
namespace {

constexpr const char* kHelp =
    R"(Plans, builds and serves batches of variable-length sequences.

Usage: batchwrightd --config FILE [--folder DIR [--private-page]] [--log-level LEVEL]
       batchwrightd --config FILE --check-config [--for-run]
       batchwrightd --reload PID

  --config FILE    The configuration, a TOML file
  --folder DIR     Folder of the sockets of clients and pages, unless the configuration places them
  --private-page   Pages at a free port of the loopback, too, below a path that cannot be guessed,
                   unless the configuration places them
  --log-level LEVEL
                   Unless the configuration has log_level: debug, info, warn or error
  --check-config   Read the configuration, check what it names (datasets, accounts, keys, folders),
                   report its faults, and serve nothing
  --for-run        Check it as `batchwright run` will use it, which gives the sockets a folder
  --reload PID     Have a running daemon read its configuration again, and wait for the result
  -h, --help       Print this text and exit
  --version        Print the version and exit

Exit codes: 0 done, 1 the work failed, 2 the call or its input is wrong.
Example: batchwrightd --config /etc/batchwright/batchwrightd.toml --check-config
)";

enum Option : int {
  kHelpOption = 'h',
  kVersion = 256,
  kConfig,
  kFolder,
  kPrivatePage,
  kLogLevel,
  kCheck,
  kForRun,
  kReload
};

constexpr std::array kOptions = {option{"help", no_argument, nullptr, kHelpOption},
                                 option{"version", no_argument, nullptr, kVersion},
                                 option{"config", required_argument, nullptr, kConfig},
                                 option{"folder", required_argument, nullptr, kFolder},
                                 option{"private-page", no_argument, nullptr, kPrivatePage},
                                 option{"log-level", required_argument, nullptr, kLogLevel},
                                 option{"check-config", no_argument, nullptr, kCheck},
                                 option{"for-run", no_argument, nullptr, kForRun},
                                 option{"reload", required_argument, nullptr, kReload},
                                 option{}};

int wrong_call(std::string_view why) {
  std::fputs(fmt::format("batchwrightd: {}; --help lists what is allowed\n", why).c_str(), stderr);
  return kWrongInput;
}

/// Nothing if the option is a good one.
std::optional<int> take_option(int which, CommandLine& call) {
  switch (which) {
    case kHelpOption: std::fputs(kHelp, stdout); return kDone;
    case kVersion: {
      const std::string_view commit = build_commit();
      std::fputs(fmt::format("batchwrightd {}{}{}\n", BATCHWRIGHT_VERSION,
                             commit.empty() ? "" : " ", commit)
                     .c_str(),
                 stdout);
      return kDone;
    }
    case kConfig: call.config.file = optarg; return {};
    case kFolder: {
      std::error_code ignored;
      call.config.folder = optarg;
      if (std::filesystem::is_directory(call.config.folder, ignored)) return {};
      return wrong_call(
          fmt::format("--folder: found \"{}\"; allowed: a folder that is there", optarg));
    }
    case kPrivatePage: call.config.private_page = true; return {};
    case kLogLevel: {
      const auto level = parse_log_level(optarg);
      call.config.log_level = level.value_or(Severity::info);
      if (level) return {};
      return wrong_call(
          fmt::format("--log-level: found \"{}\"; allowed: debug info warn error", optarg));
    }
    case kForRun: call.for_run = true; return {};
    case kReload: {
      constexpr int kMostProcesses = 1 << 22;  // the kernel's limit
      const auto number = parse_whole<unsigned>(optarg);
      call.reload = static_cast<int>(number.value_or(0));
      if (number && *number > 0 && *number <= kMostProcesses) return {};
      return wrong_call(fmt::format(
          "--reload: found \"{}\"; allowed: the number of a process, 1 and up", optarg));
    }
    default: call.check_config = true; return {};
  }
}

/// What is wrong with an option as it is written; empty: nothing. getopt takes names that are cut
/// short, and the next option for a value. `entry` is that of kOptions; -1: none.
std::string fault_in(int which, int entry, std::string_view given) {
  if (which == ':') return fmt::format("{} takes a value", given);
  const std::string_view name = given.substr(0, given.find('='));
  const bool in_full = entry < 0
                           ? which == kHelpOption && given == "-h"
                           : name.substr(2) == kOptions.at(static_cast<std::size_t>(entry)).name;
  if (!in_full) return fmt::format("found {}, which is no option", given);
  if (optarg != nullptr && (*optarg == '\0' || std::string_view(optarg).starts_with("--"))) {
    return fmt::format("{} takes a value", name);
  }
  return {};
}

}  // namespace

std::variant<CommandLine, int> parse_command_line(int argc, const char* const* argv) {
  CommandLine call;
  // '+': words stay in their order, so that none is written to; ':': getopt says nothing of its
  // own.
  auto* const words = const_cast<char* const*>(argv);
  std::set<int> seen;
  optind = 0;
  for (int at = 1;; at = optind) {
    int entry = -1;
    const int which = getopt_long(argc, words, "+:h", kOptions.data(), &entry);
    if (which == -1) break;
    if (const std::string fault = fault_in(which, entry, argv[at]); !fault.empty())
      return wrong_call(fault);
    if (!seen.insert(which).second) return wrong_call(fmt::format("found {} twice", argv[at]));
    if (const auto code = take_option(which, call)) return *code;
  }
  if (optind < argc) return wrong_call(fmt::format("found {}, which is no option", argv[optind]));
  const bool serves = !call.config.file.empty();
  if (serves && call.reload) return wrong_call("found --config and --reload; allowed: one of them");
  if (!serves && !call.reload) return wrong_call("found neither --config nor --reload");
  if (!serves && seen.size() > 1) return wrong_call("--reload takes no other option");
  if (call.for_run && !call.check_config) return wrong_call("--for-run takes --check-config");
  if (call.config.private_page && call.config.folder.empty()) {
    return wrong_call("--private-page takes --folder");
  }
  return call;
}

int exit_code(ErrorCode code) { return exit_codes(code).daemon; }

}  // namespace batchwright
