#include "client/command/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

// All three scripts work alike: the words before the cursor say which command is being written;
// after an option with a value its words or files are offered, after a dash the options, and else
// the commands below or files.

namespace batchwright {
namespace {

/// The program first, then each command with those below it.
void each_command(const CompletedCommand& command,
                  const std::function<void(const CompletedCommand&)>& use) {
  use(command);
  for (const CompletedCommand& below : command.commands) each_command(below, use);
}

std::string last_word(const std::string& path) { return path.substr(path.rfind(' ') + 1); }

std::vector<std::string> words_below(const CompletedCommand& command) {
  std::vector<std::string> words;
  for (const CompletedCommand& below : command.commands) words.push_back(last_word(below.path));
  return words;
}

/// Within single quotes of any of the shells.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      // The quotes end, a quote stands escaped, and they begin again.
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

/// The lines that find out which command is written: `path` is "ingest audio", say. bash and zsh.
std::string find_path(const CompletedCommand& program, std::string_view words) {
  // All paths in one pattern: a word that is no command, such as a file, leaves `path` as it is.
  std::string known;
  each_command(program, [&](const CompletedCommand& command) {
    if (command.path.empty()) return;
    known += fmt::format("{}\"{}\"", known.empty() ? "" : " | ", command.path);
  });
  return fmt::format(
      "  for word in {}; do\n"
      "    case \"${{path:+$path }}$word\" in\n"
      "      {}) path=\"${{path:+$path }}$word\" ;;\n"
      "    esac\n"
      "  done\n",
      words, known);
}

/// One branch of a case for each option that takes a value.
std::string value_branches(const CompletedCommand& program, std::string_view offer_words,
                           std::string_view offer_files) {
  std::string branches;
  each_command(program, [&](const CompletedCommand& command) {
    for (const CompletedOption& option : command.options) {
      // Behind a flag comes whatever may come anywhere.
      if (!option.takes_value) continue;
      // Options of one name may have other words in another command, so the path is in the pattern.
      const std::string offer = option.words.empty() ? std::string(offer_files)
                                                     : fmt::format(fmt::runtime(offer_words),
                                                                   fmt::join(option.words, " "));
      branches += fmt::format("    \"{}:{}\") {}; return ;;\n", command.path, option.name, offer);
    }
  });
  return branches;
}

std::string bash_script(const CompletedCommand& program) {
  std::string script =
      "# bash completion of batchwright\n"
      "_batchwright() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path='' word\n"
      "  COMPREPLY=()\n" +
      find_path(program, "\"${COMP_WORDS[@]:1:COMP_CWORD-1}\"") + "  case \"$path:$prev\" in\n" +
      value_branches(program, "mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")",
                     "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")") +
      "  esac\n  local options='' commands=''\n  case \"$path\" in\n";
  each_command(program, [&](const CompletedCommand& command) {
    std::vector<std::string> options;
    for (const CompletedOption& option : command.options) options.push_back(option.name);
    script += fmt::format("    \"{}\") options='{}'; commands='{}' ;;\n", command.path,
                          fmt::join(options, " "), fmt::join(words_below(command), " "));
  });
  return script +
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
         "  elif [[ -n $commands ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$cur\")\n"
         "  else\n"
         "    compopt -o filenames\n"
         "    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
         "  fi\n"
         "}\n"
         "complete -F _batchwright batchwright\n";
}

/// "word:what it does", as zsh's _describe takes it.
std::string described(std::string_view word, std::string_view help) {
  std::string text;
  // A bare colon would end the word.
  for (const char c : word) text += c == ':' ? "\\:" : std::string(1, c);
  return shell_quoted(fmt::format("{}:{}", text, help));
}

std::string zsh_script(const CompletedCommand& program) {
  std::string script =
      "#compdef batchwright\n"
      "_batchwright() {\n"
      "  local cur=$words[CURRENT] prev=$words[CURRENT-1] path='' word\n"
      "  local -a options commands\n" +
      find_path(program, "\"${(@)words[2,CURRENT-1]}\"") + "  case \"$path:$prev\" in\n" +
      value_branches(program, "compadd -- {}", "_files") + "  esac\n  case \"$path\" in\n";
  each_command(program, [&](const CompletedCommand& command) {
    std::vector<std::string> options;
    for (const CompletedOption& option : command.options) {
      options.push_back(described(option.name, option.help));
    }
    std::vector<std::string> commands;
    for (const CompletedCommand& below : command.commands) {
      commands.push_back(described(last_word(below.path), below.help));
    }
    script += fmt::format("    \"{}\")\n      options=({})\n      commands=({}) ;;\n", command.path,
                          fmt::join(options, " "), fmt::join(commands, " "));
  });
  return script +
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n"
         "    _describe -o option options\n"
         "  elif (( $#commands )); then\n"
         "    _describe command commands\n"
         "  else\n"
         "    _files\n"
         "  fi\n"
         "}\n"
         "compdef _batchwright batchwright\n";
}

/// A test in fish that all of these words, and none of those, are on the line.
std::string fish_condition(const CompletedCommand& command) {
  std::string condition;
  for (std::size_t from = 0; from < command.path.size();) {
    const std::size_t to = std::min(command.path.find(' ', from), command.path.size());
    condition += fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ",
                             command.path.substr(from, to - from));
    from = to + 1;
  }
  // Once a command below is on the line, this one's words are out of place.
  const auto below = words_below(command);
  if (below.empty()) return condition;
  return fmt::format("{}not __fish_seen_subcommand_from {}",
                     condition.empty() ? "" : condition + "; and ", fmt::join(below, " "));
}

std::string fish_script(const CompletedCommand& program) {
  std::string script = "# fish completion of batchwright\n";
  each_command(program, [&](const CompletedCommand& command) {
    const std::string when = shell_quoted(fish_condition(command));
    for (const CompletedCommand& below : command.commands) {
      script += fmt::format("complete -c batchwright -f -n {} -a {} -d {}\n", when,
                            last_word(below.path), shell_quoted(below.help));
    }
    for (const CompletedOption& option : command.options) {
      // -x: one of the words and no file; -r: a value, which may be a file.
      const std::string words =
          option.words.empty()
              ? (option.takes_value ? " -r" : "")
              : fmt::format(" -x -a {}",
                            shell_quoted(fmt::format("{}", fmt::join(option.words, " "))));
      const bool is_long = option.name.starts_with("--");
      script +=
          fmt::format("complete -c batchwright -n {} {} {}{} -d {}\n", when, is_long ? "-l" : "-s",
                      option.name.substr(is_long ? 2 : 1), words, shell_quoted(option.help));
    }
  });
  return script;
}

}  // namespace

Result<std::string> completion_script(std::string_view shell, const CompletedCommand& program) {
  if (shell == "bash") return bash_script(program);
  if (shell == "zsh") return zsh_script(program);
  if (shell == "fish") return fish_script(program);
  return Error{ErrorCode::invalid_argument,
               fmt::format("shell \"{}\"; allowed: bash zsh fish", shell)};
}

}  // namespace batchwright
