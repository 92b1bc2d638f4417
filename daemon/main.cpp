#include <fmt/format.h>
#include <malloc.h>
#include <pthread.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "daemon/check.h"
#include "daemon/command_line.h"
#include "daemon/config/config.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/reload/reload_socket.h"
#include "daemon/signals.h"
#include "daemon/startup_memory.h"
#include "formats/formats.h"

namespace {

using namespace batchwright;

int check_config(const CommandLine& call) {
  const auto config = load_config(call.config);
  if (!config) {
    fmt::print(stderr, "{}\n", config.error().message);
    return exit_code(config.error().code);
  }
  const std::string file = call.config.file.string();
  const std::vector<Finding> findings = examine(*config, call.for_run);
  for (const Finding& each : findings) {
    fmt::print(stderr, "{}: {}: {}\n", file, name_of(each.grade), each.text);
  }
  // Only without warnings and errors is it "ok"; a note leaves the code at 0.
  const int code = exit_code(findings);
  if (code != 0) return code;
  std::string names;
  for (const FeedConfig& feed : config->feeds) names += " " + feed.served.name;
  const std::size_t feeds = config->feeds.size();
  fmt::print("{}: ok: {} feed{}:{}\n", file, feeds, feeds == 1 ? "" : "s", names);
  return 0;
}

/// The daemon's own verdict.
int reload(int pid) {
  const auto applied = ask_for_reload(pid);
  if (applied) {
    fmt::print("reloaded: {}\n", *applied);
    return 0;
  }
  // Any other error says nothing of the configuration: the daemon may not even be there.
  const bool refused = applied.error().code == ErrorCode::bad_configuration;
  fmt::print(
      stderr, "{}{}\n",
      refused ? "not reloaded, the running configuration stays in force: " : "batchwrightd: ",
      applied.error().message);
  return 1;
}

/// One event for each line, as a configuration may have several faults.
int fail(const Error& error) {
  for (const std::string_view line : split_lines(error.message)) spdlog::error("{}", line);
  return exit_code(error.code);
}

Result<int> serve(const CommandLine& call) {
  ignore_signals();
  // Before all else, since each thread inherits the mask of the one that starts it. Only who waits
  // for a writer is ended by a signal at once.
  const bool waits = is_read_once(call.config.file);
  if (waits) {
    let_signals_in();
  } else {
    hold_signals();
  }
  // Faults of the configuration are logged before the configuration can say how.
  start_logging(Severity::info);
  const auto config = load_config(call.config);
  if (waits) hold_signals();
  if (!config) return fail(config.error());
  start_logging(config->daemon.log_level, config->daemon.log_format);
  // It may not live to say it later.
  const std::string lack = memory_shortage(0, memory_room());
  if (!lack.empty()) spdlog::warn("{}", lack);
  auto daemon = Daemon::start(call.config, *config);
  return daemon ? (*daemon)->run() : fail(daemon.error());
}

Result<int> do_as_told(int argc, char** argv) {
  const auto call = parse_command_line(argc, argv);
  if (const int* code = std::get_if<int>(&call)) return *code;
  const auto& chosen = std::get<CommandLine>(call);
  if (chosen.reload) return reload(*chosen.reload);
  if (chosen.check_config) return check_config(chosen);
#ifdef __GLIBC__
  // Each arena of the allocator keeps memory of its own, and no path that is hot allocates.
  ::mallopt(M_ARENA_MAX, 2);
#endif
  return serve(chosen);
}

/// Of an exception that nothing on its thread takes: lack of memory, or our own bug. Clients go on
/// where they were once the next daemon is there.
[[noreturn]] void end_uncaught() {
  std::array<char, 16> thread{};
  ::pthread_getname_np(::pthread_self(), thread.data(), thread.size());
  const std::exception_ptr thrown = std::current_exception();
  const auto taken = as_result(ErrorCode::internal, "", [&]() -> Result<void> {
    if (thrown) std::rethrow_exception(thrown);
    return {};
  });
  const char* const what =
      taken ? "terminated without an exception" : taken.error().message.c_str();
  std::fprintf(stderr, "batchwrightd: cannot go on: thread %s: %s\n", thread.data(), what);
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(end_uncaught);
  // Lack of memory at the start, which a supervisor's next one may not find.
  const auto code =
      as_result(ErrorCode::busy, "starting: ", [&] { return do_as_told(argc, argv); });
  return code ? *code : fail(code.error());
}
