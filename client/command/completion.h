#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// An option as a shell completes it.
struct CompletedOption {
  std::string name;         ///< The option's name with its dashes.
  std::string help;         ///< One line.
  bool takes_value = true;  ///< A word follows.
  std::vector<std::string>
      words;  ///< The words that are allowed; empty: a file's name, as far as known.
};

/// A command, or the program itself, whose path is empty.
struct CompletedCommand {
  std::string path;  ///< Such as "ingest audio".
  std::string help;
  std::vector<CompletedOption> options;
  std::vector<CompletedCommand> commands;
};

/// A script for bash, zsh or fish that completes `program`'s commands, options and their words; it
/// is to be sourced, or laid where the shell looks for completions. Errors: invalid_argument
/// (another shell).
Result<std::string> completion_script(std::string_view shell, const CompletedCommand& program);

}  // namespace batchwright
