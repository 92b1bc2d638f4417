#pragma once

#include <filesystem>

// One struct of options and one function a command. command_line.cpp fills the struct and calls
// the function, which lives in the file named after the command and returns the exit code.

namespace batchwright {

struct InspectOptions {
  std::filesystem::path dataset;
  bool json = false;
};
int run_inspect(const InspectOptions& options);

}  // namespace batchwright
