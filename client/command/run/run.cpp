#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <optional>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/run/child.h"
#include "client/command/run/shared_daemon.h"

namespace batchwright {
namespace {

namespace fs = std::filesystem;

/// Passed on to the command; those in kEnding end a run that has no command yet, or none any more.
constexpr std::array kPassedOn = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT};
constexpr std::array kEnding = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
constexpr std::chrono::seconds kEndTime(10);
constexpr int kTries = 100;
constexpr timespec kLook{0, 200'000'000};  // from one look at the daemon to the next

sigset_t awaited() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int signal : kPassedOn) sigaddset(&set, signal);
  return set;
}

bool is_ending(int signal) {
  return std::find(kEnding.begin(), kEnding.end(), signal) != kEnding.end();
}

/// The daemon, beside this program where it is installed or built.
std::string daemon_program() {
  std::error_code ignored;  // then the shell's path has it
  const fs::path beside =
      fs::read_symlink("/proc/self/exe", ignored).parent_path() / "batchwrightd";
  return fs::exists(beside, ignored) ? beside.string() : "batchwrightd";
}

/// One call of `batchwright run`.
class Run {
 public:
  Run(const RunOptions& options, SharedDaemon daemon)
      : options_(options), daemon_(std::move(daemon)), awaited_(awaited()) {}

  int work() {
    if (auto ready = wait_until_ready(); !ready) return end_with(ready.error());
    if (ended_by_) return finish(128 + *ended_by_);
    ChildOptions command{options_.command, {{"BATCHWRIGHT_ENDPOINT", daemon_.place().endpoint}}};
    const auto started = start_child(command);
    if (!started) return end_with(started.error());
    command_ = *started;
    while (!code_) {
      if (auto looked = look(true); !looked) warn(looked.error().message);
    }
    return wait_for_others(*code_);
  }

 private:
  Result<void> wait_until_ready() {
    while (!ended_by_) {
      if (auto tended = daemon_.tend(); !tended) return tended;
      const auto ready = daemon_.ready();
      if (!ready) return ready.error();
      if (*ready) return {};
      if (auto looked = look(false); !looked) return looked;
    }
    return {};
  }

  /// Waits a moment for what comes: ends of children, signals.
  Result<void> look(bool tend) {
    siginfo_t info{};
    const timespec moment = tend || !daemon_.child() ? kLook : timespec{0, 10'000'000};
    const int signal = ::sigtimedwait(&awaited_, &info, &moment);
    if (signal > 0 && signal != SIGCHLD) take_signal(signal, info);
    if (auto reaped = reap(); !reaped) return reaped;
    return tend ? daemon_.tend() : Result<void>();
  }

  void take_signal(int signal, const siginfo_t& info) {
    // What the terminal's keys send comes to the whole group, and so to the command, by itself.
    const bool by_keys = info.si_code == SI_KERNEL;
    if (command_ && !by_keys) ::kill(*command_, signal);
    if (!command_ && is_ending(signal)) ended_by_ = signal;
  }

  Result<void> reap() {
    Result<void> result;
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid == command_) {
        code_ = code_of_end(status);
        command_.reset();
      } else if (pid == daemon_.child()) {
        result = daemon_.ended(status);
      }
    }
    return result;
  }

  /// The daemon is a child of this process, and would end with it.
  int wait_for_others(int code) {
    for (;;) {
      const auto others = daemon_.leave();
      if (!others) return finish(fail(others.error()));
      if (!*others || ended_by_) return finish(code);
      if (auto looked = look(true); !looked) warn(looked.error().message);
    }
  }

  /// In order, or after kEndTime by force: who waits for this process may be about to kill it.
  void end_daemon(pid_t child) const {
    ::kill(child, SIGTERM);
    const auto end = std::chrono::steady_clock::now() + kEndTime;
    while (::waitpid(child, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) ::kill(child, SIGKILL);
      const timespec moment{0, 20'000'000};
      ::sigtimedwait(&awaited_, nullptr, &moment);
    }
  }

  int finish(int code) {
    static_cast<void>(daemon_.leave());  // nothing to do about a lock that cannot be had
    if (const auto child = daemon_.child()) end_daemon(*child);
    daemon_.remove_files();
    std::error_code ignored;  // others may have come meanwhile, or it was not made here
    const fs::path& folder = daemon_.place().source.folder;
    if (!folder.empty()) fs::remove(folder, ignored);
    return code;
  }

  /// A daemon that runs may have other users.
  int end_with(const Error& error) {
    const int code = fail(error);
    return daemon_.child() ? wait_for_others(code) : finish(code);
  }

  const RunOptions& options_;
  SharedDaemon daemon_;
  const sigset_t awaited_;
  std::optional<pid_t> command_;
  std::optional<int> code_;  // of the command
  std::optional<int> ended_by_;
};

}  // namespace

int run_run(const RunOptions& options) {
  // In the whole process, before it makes anything that would stay: they are taken where they are
  // waited for, and nowhere else.
  const sigset_t held = awaited();
  sigprocmask(SIG_BLOCK, &held, nullptr);
  const std::string program = options.daemon.empty() ? daemon_program() : options.daemon.string();
  for (int tries = 0;; ++tries) {
    auto place = place_daemon(options.config);
    if (!place) return fail(place.error());
    auto daemon = SharedDaemon::join(*std::move(place), program);
    if (daemon) return Run(options, *std::move(daemon)).work();
    // The last user of the folder may remove it between the two calls.
    const bool once_more = daemon.error().code == ErrorCode::not_found && tries < kTries;
    if (!once_more) return fail(daemon.error());
  }
}

}  // namespace batchwright
