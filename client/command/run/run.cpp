#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/find_pages.h"
#include "client/command/run/child.h"
#include "client/command/run/metrics_file.h"
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
  ::signal(SIGPIPE, SIG_IGN);  // the reader of standard error may end before the command
  ::sigprocmask(SIG_SETMASK, &awaited, nullptr);
}

/// Whether it came from Slurm's manager of the step, which sends it to each process there, and so
/// to the command. One that meets it twice may be ended by the second: a program that is just
/// leaving has no handler any more.
bool is_sent_to_all(const siginfo_t& info) {
  if (info.si_code != SI_USER) return false;
  // From outside of a container of its own there is no number for the sender.
  if (info.si_pid == 0) return std::getenv("SLURM_JOB_ID") != nullptr;
  const auto name = file_text(fmt::format("/proc/{}/comm", info.si_pid));
  return name && name->starts_with("slurmstepd");
}

/// One call of `batchwright run`.
class Run {
 public:
  Run(const RunOptions& options, DaemonPlace place, const std::string& program)
      : options_(options),
        shows_(::isatty(STDERR_FILENO) == 1),
        daemon_(std::move(place), program, shows_),
        awaited_(awaited()) {
    if (!options.textfile.empty()) metrics_.emplace(options.textfile, daemon_.place().name);
  }

  int work() {
    say(daemon_.place().note);
    if (auto ready = wait_until_ready(); !ready) return end_with(ready.error());
    if (ended_by_) return finish(128 + *ended_by_);
    if (auto tended = tend(); !tended) say(tended.error().message);
    ChildOptions command{options_.command, {{"BATCHWRIGHT_ENDPOINT", daemon_.place().endpoint}}};
    const auto started = start_child(command);
    if (!started) return end_with(started.error());
    command_ = *started;
    pass_on_pending();
    while (!code_) {
      if (auto looked = look(true); !looked) say(looked.error().message);
    }
    // Last, below what the command has said: it may be why.
    if (*code_ != kDone) say(daemon_.not_served());
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
  Result<void> look(bool tends) {
    siginfo_t info{};
    const timespec moment = tends || !daemon_.child() ? kLook : timespec{0, 10'000'000};
    const int signal = ::sigtimedwait(&awaited_, &info, &moment);
    if (signal > 0 && signal != SIGCHLD) take_signal(signal, info);
    if (auto reaped = reap(); !reaped) return reaped;
    return tends ? tend() : Result<void>();
  }

  /// Of what runs: the daemon, and what is told of it.
  Result<void> tend() {
    if (auto tended = daemon_.tend(); !tended) return tended;
    const bool measures = metrics_ && daemon_.owns() && metrics_->is_due();
    if (!shows_ && !measures) return {};
    const auto pages = find_pages(daemon_.place().endpoint);
    if (!pages) return {};  // it has none, or is starting again
    if (shows_) tell(*pages);
    return measures ? metrics_->renew(pages->front()) : Result<void>();
  }

  /// To the user at the terminal: where the daemon can be watched.
  void tell(const std::vector<std::string>& pages) {
    if (told_ == pages) return;
    told_ = pages;
    const auto page = std::find_if(pages.begin(), pages.end(), [](const std::string& each) {
      return each.starts_with("http");
    });
    const std::string address = page == pages.end() ? "" : fmt::format("page at {}, or ", *page);
    say(fmt::format("{}batchwright top --endpoint {}", address, daemon_.place().endpoint));
  }

  void take_signal(int signal, const siginfo_t& info) {
    // What the terminal's keys send comes to the whole group, and so to the command, by itself.
    const bool by_keys = info.si_code == SI_KERNEL;
    if (command_ && !by_keys && !is_sent_to_all(info)) ::kill(*command_, signal);
    if (!command_ && is_ending(signal)) ended_by_ = signal;
  }

  /// A signal from before there was a command did not reach it, even if it was sent to all. Of one
  /// from since then the command may get a second: it has hardly begun.
  void pass_on_pending() {
    sigset_t passed = awaited_;
    sigdelset(&passed, SIGCHLD);
    const timespec now{};
    for (int signal = 0; (signal = ::sigtimedwait(&passed, nullptr, &now)) > 0;) {
      ::kill(*command_, signal);
    }
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

  /// In order, or after kEndTime by force: what waits for this process may be about to kill it.
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
    metrics_.reset();
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
  const bool shows_;  // at a terminal: where the pages are
  SharedDaemon daemon_;
  LineStream stream_{STDERR_FILENO};  // shared with daemon and command, and perhaps not read
  std::string said_;
  std::vector<std::string> told_;  // pages
  std::optional<MetricsFile> metrics_;
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
