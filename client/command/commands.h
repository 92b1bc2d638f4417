#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

// One struct of options and one function a command. command_line.cpp fills the struct and calls
// the function, which lives in the file named after the command and returns the exit code.

namespace batchwright {

struct InspectOptions {
  std::filesystem::path dataset;
  bool json = false;
};
int run_inspect(const InspectOptions& options);

struct PlanOptions {
  std::vector<std::string> lengths;             ///< Files of lengths; `-` is standard input.
  std::vector<std::filesystem::path> datasets;  ///< Either these or lists of lengths.
  /// Name and text of each planning setting that was given.
  std::vector<std::pair<std::string, std::string>> settings;
  std::uint64_t epoch = 0;
  bool json = false;
  bool batches = false;
};
int run_plan(const PlanOptions& options);

}  // namespace batchwright
