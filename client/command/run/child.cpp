#include "client/command/run/child.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace batchwright {
namespace {

/// In the child, until it is another program; `report` takes the errno of what failed.
[[noreturn]] void become(const ChildOptions& options, char* const* words, pid_t parent,
                         int report) {
  const auto fail = [report] {
    const int code = errno;
    const bool told = ::write(report, &code, sizeof code) == sizeof code;
    ::_exit(told ? 127 : 126);
  };
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // What this program has set for itself; what it has inherited, as nohup's SIGHUP, goes on.
  ::signal(SIGCHLD, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
  if (options.own_group) ::setpgid(0, 0);
  // What a kill of the parent leaves behind would keep a host's memory, or its GPU.
  if (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) fail();
  if (::getppid() != parent) ::_exit(127);  // it ended before
  ::execvp(words[0], words);
  fail();
  ::_exit(127);
}

}  // namespace

Result<pid_t> start_child(const ChildOptions& options) {
  // Before the fork, behind which memory may not be asked for: threads of libraries may hold locks.
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : options.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::array<int, 2> ends{};
  // Closed by the start of the program: what can be read is the reason why there is none.
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{ErrorCode::io_error, fmt::format("pipe: {}", std::strerror(errno))};
  }
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    // A process counts against the limits of threads.
    const int code = errno;
    if (code == EAGAIN) {
      auto room = room_for_threads(1, "a process for the command");
      if (!room) return room.error();
    }
    return Error{ErrorCode::io_error, fmt::format("fork: {}", std::strerror(code))};
  }
  if (pid == 0) become(options, words.data(), parent, write_end.get());
  write_end = Descriptor();
  int code = 0;
  if (::read(read_end.get(), &code, sizeof code) != sizeof code) return pid;
  ::waitpid(pid, nullptr, 0);
  return Error{code == ENOENT ? ErrorCode::not_found : ErrorCode::io_error,
               fmt::format("{}: {}", options.words.front(), std::strerror(code))};
}

int code_of_end(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace batchwright
