#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace batchwright::test {

/// Waits, at most `seconds`, until `holds()`; says whether it came to hold.
bool eventually(const std::function<bool()>& holds, int seconds = 20);

/// A child process whose output goes to files. Killed and reaped with this object.
class Process {
 public:
  /// `words` begin with the program's path.
  explicit Process(const std::vector<std::string>& words);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Waits, at most `seconds`, for its end: the exit code, or 128 + the signal that ended it.
  /// Empty when it goes on.
  std::optional<int> wait(int seconds = 20);
  bool running();
  std::string out() const;
  std::string err() const;

 private:
  TemporaryFolder folder_;
  pid_t pid_ = -1;
  std::optional<int> code_;
};

/// Runs a program to its end: exit code and both outputs.
struct Finished {
  int code = -1;
  std::string out;
  std::string err;
};
Finished run(const std::vector<std::string>& words);

/// The path of one of the project's own programs, such as "batchwrightd".
std::string program(const std::string& name);

/// Whole content of a file.
std::string read_file(const std::filesystem::path& path);

/// Body of the answer to GET on loopback; empty when no one answers with 200.
std::string http_get(unsigned short port, const std::string& path);

}  // namespace batchwright::test
