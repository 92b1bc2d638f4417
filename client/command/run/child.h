#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// How a child is started.
struct ChildOptions {
  std::vector<std::string> words;  ///< The program, looked for in PATH, and its arguments.
  /// Names and values that are set in this process, and so in its children.
  std::vector<std::pair<std::string, std::string>> environment;
  bool own_group = false;  ///< Keys of the terminal do not reach it.
};

/// Starts a program with this process's streams and folder, and with no signal held back. The child
/// gets SIGTERM when the thread that called this ends, however it ends.
/// Errors: not_found, io_error: it cannot be started.
Result<pid_t> start_child(const ChildOptions& options);

/// What a shell would say of a child's end: its exit code, or 128 and its signal.
int code_of_end(int status);

}  // namespace batchwright
