#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "daemon/command_line.h"
#include "daemon/config.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/signals.h"

namespace {

using namespace batchwright;

int check_config(const CommandLine& call) {
  const auto config = load_config(call.config);
  if (!config) {
    fmt::print(stderr, "{}\n", config.error().message);
    return exit_code(config.error().code);
  }
  std::string names;
  for (const FeedConfig& feed : config->feeds) names += " " + feed.name;
  const std::size_t feeds = config->feeds.size();
  fmt::print("{}: ok: {} feed{}:{}\n", call.config.string(), feeds, feeds == 1 ? "" : "s", names);
  return 0;
}

/// One event for each line, as a configuration may have several faults.
int fail(const Error& error) {
  std::istringstream lines(error.message);
  for (std::string line; std::getline(lines, line);) spdlog::error("{}", line);
  return exit_code(error.code);
}

int serve(const CommandLine& call) {
  hold_signals();
  start_logging(LogLevel::info);
  const auto config = load_config(call.config);
  if (!config) return fail(config.error());
  start_logging(config->daemon.log_level);
  auto daemon = Daemon::start(call.config, *config);
  return daemon ? (*daemon)->run() : fail(daemon.error());
}

}  // namespace

int main(int argc, char** argv) {
  const auto call = parse_command_line(argc, argv);
  if (const int* code = std::get_if<int>(&call)) return *code;
  const auto& chosen = std::get<CommandLine>(call);
  return chosen.check_config ? check_config(chosen) : serve(chosen);
}
