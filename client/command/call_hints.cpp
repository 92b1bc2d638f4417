#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "client/command/command_options.h"
#include "formats/formats.h"

// What may have been meant by a call that is wrong.

namespace batchwright {
namespace {

/// The command whose name is nearest to what stands where one should, for a hint.
std::string nearest_command(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    // An option before any command, or behind a known one: CLI11's own message fits.
    if (word.starts_with('-')) return {};
    std::vector<std::string_view> names;
    const CLI::App* next = nullptr;
    for (const CLI::App* below : at->get_subcommands({})) {
      names.emplace_back(below->get_name());
      if (below->get_name() == word) next = below;
    }
    // Nothing below it, so the word is an argument and no slip of a command's name.
    if (names.empty()) return {};
    if (next == nullptr) {
      const std::string_view near = nearest(word, names);
      return near.empty()
                 ? fmt::format("no command \"{}\"; allowed: {}", word, fmt::join(names, " "))
                 : fmt::format("no command \"{}\"; did you mean {}?", word, near);
    }
    at = next;
  }
  return {};
}

/// The options that a word may have been meant for: the few that begin so, or one of few edits.
std::string near_options(const CLI::App& command, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  const std::string given = word.substr(2, word.find('=') - 2);
  constexpr std::size_t kLeastLetters = 3;
  constexpr std::size_t kMostNames = 4;
  for (std::size_t length = given.size(); length >= kLeastLetters; --length) {
    std::vector<std::string> alike;
    for (const std::string& name : names) {
      if (name.starts_with(given.substr(0, length))) alike.push_back("--" + name);
    }
    if (alike.size() > kMostNames) break;
    if (!alike.empty()) return fmt::format("{}", fmt::join(alike, " or "));
  }
  const std::string_view near = nearest(given, {names.begin(), names.end()});
  return near.empty() ? "" : fmt::format("--{}", near);
}

/// What may be meant by a word that the command, which the call has, does not take.
std::string hint_for_word(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const bool has_dashes = std::find(words.begin(), words.end(), "--") != words.end();
  if (command->get_name() == "run" && !has_dashes) {
    return "run: write -- before the command and its arguments";
  }
  for (const std::string& word : words) {
    if (word == "--") return {};
    const std::string name = word.substr(0, word.find('='));
    if (!word.starts_with("--") || command->get_option_no_throw(name) != nullptr) continue;
    const std::string near = near_options(*command, word);
    return near.empty() ? "" : fmt::format("no option {}; did you mean {}?", name, near);
  }
  return {};
}

}  // namespace

std::string hint_for_call(const CLI::App& app, const CLI::ParseError& error, int argc,
                          const char* const* argv) {
  std::string hint = nearest_command(app, argc, argv);
  const bool is_extra = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  return hint.empty() && is_extra ? hint_for_word(app, argc, argv) : hint;
}

}  // namespace batchwright
