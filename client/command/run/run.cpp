#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
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

/// Signals as this program needs them, whatever its parent has set: all that are waited for are
/// held back in the whole process, so that they are taken there and nowhere else, and no others. Of
/// a parent that ignores SIGCHLD the kernel would take the children's ends away.
void take_signals(const sigset_t& awaited) {
  ::signal(SIGCHLD, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);  // who reads standard error may end before the command
  ::sigprocmask(SIG_SETMASK, &awaited, nullptr);
}

/// One call of `batchwright run`.
class Run {
 public:
  Run(const RunOptions& options, DaemonPlace place, const std::string& program)
      : options_(options), daemon_(std::move(place), program), awaited_(awaited()) {}

  int work() {
    say(daemon_.place().note);
    if (auto ready = wait_until_ready(); !ready) return end_with(ready.error());
    if (ended_by_) return finish(128 + *ended_by_);
    ChildOptions command{options_.command, {{"BATCHWRIGHT_ENDPOINT", daemon_.place().endpoint}}};
    const auto started = start_child(command);
    if (!started) return end_with(started.error());
    command_ = *started;
    while (!code_) {
      if (auto looked = look(true); !looked) say(looked.error().message);
    }
    return wait_for_others(*code_);
  }

 private:
  Result<void> wait_until_ready() {
    while (!ended_by_) {
      const auto joined = daemon_.join();
      if (!joined) return joined.error();
      if (*joined) break;
      if (auto looked = look(false); !looked) return looked;
    }
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
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
      if (pid == command_) {
        code_ = code_of_end(status);
        command_.reset();
      } else if (pid == daemon_.child()) {
        result = daemon_.ended(status);
      }
    }
    // Taken away by the system, as it does where SIGCHLD is ignored.
    if (command_ && ::kill(*command_, 0) != 0 && errno == ESRCH) {
      command_.reset();
      code_ = kFailed;
      return Error{ErrorCode::io_error, "the command has ended, and the system does not say how"};
    }
    return result;
  }

  /// The daemon is a child of this process, and would end with it. The command's code is returned
  /// whatever becomes of the daemon.
  int wait_for_others(int code) {
    for (;;) {
      const auto others = daemon_.leave();
      // Where the folder has gone there is no one to wait for.
      if (!others) say(others.error().message);
      if (!others || !*others || ended_by_) return finish(code);
      if (auto looked = look(true); !looked) say(looked.error().message);
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
    return code;
  }

  /// A daemon that runs may have other users.
  int end_with(const Error& error) {
    say(error.message);
    const int code = exit_codes(error.code).command;
    return daemon_.child() ? wait_for_others(code) : finish(code);
  }

  /// Once, however often it is found.
  void say(const std::string& text) {
    if (text.empty() || text == said_) return;
    said_ = text;
    stream_.write(fmt::format("batchwright: {}\n", text));
  }

  const RunOptions& options_;
  SharedDaemon daemon_;
  LineStream stream_{STDERR_FILENO};  // shared with daemon and command, and perhaps not read
  std::string said_;
  const sigset_t awaited_;
  std::optional<pid_t> command_;
  std::optional<int> code_;  // of the command
  std::optional<int> ended_by_;
};

}  // namespace

int run_run(const RunOptions& options) {
  const auto job = read_job(options.config);
  if (!job) return fail(job.error());
  auto place = place_daemon(*job);
  if (!place) return fail(place.error());
  const std::string program = options.daemon.empty() ? daemon_program() : options.daemon.string();
  // Before anything that would stay is made.
  take_signals(awaited());
  return Run(options, *std::move(place), program).work();
}

}  // namespace batchwright
