#pragma once

namespace batchwright {

/// Parses the arguments and runs the command they name. Returns the exit code:
/// 0 done, 1 the work failed, 2 the call or its input is wrong.
int run_command_line(int argc, const char* const* argv);

}  // namespace batchwright
