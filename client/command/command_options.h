#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/command/commands.h"

// What the files that tie options to commands have in common. This file alone includes CLI11.

namespace batchwright {

using Action = std::function<int()>;

/// Has `action` run `run` with the options as they stand after parsing.
template <class Options>
void on_chosen(CLI::App& command, Action& action, std::shared_ptr<Options> options,
               int (*run)(const Options&)) {
  command.callback([&action, options, run] { action = [options, run] { return run(*options); }; });
}

/// An option whose values are words.
template <class Value>
CLI::Option* add_choice(CLI::App& command, const char* name, Value& value,
                        const std::map<std::string, Value>& choices) {
  std::string chosen;
  for (const auto& [word, meaning] : choices) {
    if (meaning == value) chosen = word;
  }
  return command
      .add_option_function<std::string>(
          name, [&value, choices](const std::string& word) { value = choices.at(word); })
      ->check(CLI::IsMember(choices))
      ->type_name("")
      ->default_str(chosen);
}

/// NAME=VALUE in two. Throws what CLI11 reports.
inline std::pair<std::string, std::string> named_value(const std::string& option,
                                                       const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == text.npos || at == 0) {
    throw CLI::ValidationError(option, fmt::format("found {}, allowed: NAME=VALUE", text));
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

/// An option NAME=VALUE that may be given several times; `take` gets each name and value. It is
/// called while the call is parsed, and throws what CLI11 reports.
inline CLI::Option* add_named_values(
    CLI::App& command, const std::string& name, const char* what,
    std::function<void(const std::string& name, const std::string& value)> take) {
  return command
      .add_option_function<std::vector<std::string>>(
          name,
          [name, take = std::move(take)](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              const auto [key, value] = named_value(name, text);
              take(key, value);
            }
          },
          what)
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// NAME=VALUE in two, or VALUE alone, with an empty name.
inline std::pair<std::string, std::string> optionally_named_value(const std::string& option,
                                                                  const std::string& text) {
  if (text.find('=') == text.npos) return {"", text};
  return named_value(option, text);
}

/// A check for unsigned options, since CLI11 would read -1 as the largest number there is.
inline CLI::Validator from_zero() {
  return {[](std::string& text) {
            return text.starts_with('-') ? "found " + text + ", allowed: 0 and up" : std::string();
          },
          ""};
}

/// A check for the address of a daemon.
inline CLI::Validator an_endpoint() {
  return {[](std::string& text) {
            return text.starts_with("ipc://") || text.starts_with("tcp://")
                       ? std::string()
                       : fmt::format("found \"{}\", allowed: ipc://PATH or tcp://HOST:PORT", text);
          },
          ""};
}

/// What --help says where BATCHWRIGHT_ENDPOINT is not looked at yet.
inline constexpr const char* kUsualEndpoint = "BATCHWRIGHT_ENDPOINT, or " BW_DEFAULT_ENDPOINT;

inline CLI::Option* add_endpoint(CLI::App& command, std::string& endpoint, const char* usual) {
  return command.add_option("--endpoint", endpoint, "Endpoint of the daemon")
      ->check(an_endpoint())
      ->default_str(usual);
}

/// A time in seconds, or with a unit as the configuration has them ("100ms", "2s"); it becomes a
/// number of seconds.
inline CLI::Validator a_time(double least, double most) {
  return {[least, most](std::string& text) {
            const auto unit = std::min(text.find_first_not_of("0123456789.+-e"), text.size());
            const std::string name = text.substr(unit);
            double seconds = 0;
            const bool is_number = CLI::detail::lexical_cast(text.substr(0, unit), seconds);
            if (name == "ms") seconds /= 1000;
            if (!is_number || !(name.empty() || name == "ms" || name == "s") || seconds < least ||
                seconds > most) {
              return fmt::format(
                  "found {}, allowed: a time such as 500ms or 2s, or seconds, from {} to {}", text,
                  least, most);
            }
            text = std::to_string(seconds);
            return std::string();
          },
          ""};
}

/// An option that may be given several times, with one value each.
template <class Value>
CLI::Option* add_several(CLI::App& command, const char* name, std::vector<Value>& values,
                         const char* type, const char* what) {
  return command.add_option(name, values, what)
      ->type_name(type)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// The key options, for a daemon that is reached over tcp://.
inline void add_keys(CLI::App& command, KeyOptions& keys) {
  auto* server_key = command.add_option("--server-key", keys.server_key,
                                        "The daemon's public key, 40 characters, for tcp://");
  command.add_option("--key-file", keys.key_file, "Own secret key, as keygen wrote it")
      ->type_name("FILE")
      ->needs(server_key);
}

/// What may have been meant by a call that is refused; empty: nothing. call_hints.cpp has it.
std::string hint_for_call(const CLI::App& app, const CLI::ParseError& error, int argc,
                          const char* const* argv);

/// The command `ingest` and its sources.
void add_ingest(CLI::App& app, Action& action);

/// `cmvn` and `show`; recipe_command_line.cpp has them.
void add_recipe_commands(CLI::App& app, Action& action);

/// `live replay`, `push` and `forward`; live/live_command_line.cpp has them.
void add_live_commands(CLI::App& app, Action& action);

/// `run` and `check`; run/job_command_line.cpp has them.
void add_job_commands(CLI::App& app, Action& action);

}  // namespace batchwright
