#include "daemon/config/node.h"

#include <fmt/core.h>
#include <toml++/toml.h>

#include <algorithm>

namespace batchwright {

namespace {

ConfigNode convert(const toml::node& node);

void set_place(ConfigNode& out, const toml::source_region& source) {
  out.line = source.begin.line;
  out.column = source.begin.column;
}

ConfigNode::Table convert_table(const toml::table& table) {
  ConfigNode::Table out;
  for (const auto& [key, node] : table) {
    ConfigNode& entry = out.entries.emplace_back(convert(node));
    entry.key = key.str();
    // A [table] stands where its header does; for the rest the key is the better place.
    const toml::table* inner = node.as_table();
    if (inner == nullptr || inner->is_inline()) set_place(entry, key.source());
  }
  return out;
}

ConfigNode::List convert_list(const toml::array& array) {
  ConfigNode::List out;
  for (const toml::node& node : array) out.push_back(convert(node));
  return out;
}

ConfigNode convert(const toml::node& node) {
  ConfigNode out;
  set_place(out, node.source());
  switch (node.type()) {
    case toml::node_type::table: out.value = convert_table(*node.as_table()); break;
    case toml::node_type::array: out.value = convert_list(*node.as_array()); break;
    case toml::node_type::string: out.value = node.as_string()->get(); break;
    case toml::node_type::integer: out.value = node.as_integer()->get(); break;
    case toml::node_type::floating_point: out.value = node.as_floating_point()->get(); break;
    case toml::node_type::boolean: out.value = node.as_boolean()->get(); break;
    // Dates and times: kept, so that the fault can be named where it stands.
    default: out.value = ConfigNode::Moment{};
  }
  return out;
}

/// toml++ stops at its first fault, so a text that is no TOML has one complaint.
Error complaint_of(const toml::parse_error& fault, std::string_view name) {
  const toml::source_position at = fault.source().begin;
  return {ErrorCode::bad_configuration,
          fmt::format("{}: {}", place(name, at.line, at.column), fault.description())};
}

/// Most dots of a key: each part is a table within a table, and the parser's depth is its stack's.
constexpr std::size_t kMostDots = 64;

/// Where a text of TOML that begins with a quote ends: behind its last quote, at the end of its
/// line where it has none.
std::size_t end_of_quoted(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool many_lines = text.substr(at, 3) == three;
  for (at += many_lines ? 3 : 1; at < text.size(); ++at) {
    if (!many_lines && text[at] == '\n') return at;
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (text[at] == quote && !many_lines) {
      return at + 1;
    } else if (many_lines && text.substr(at, 3) == three) {
      // Up to two quotes before the last three are the text's own.
      return std::min({text.find_first_not_of(quote, at), at + 5, text.size()});
    }
  }
  return text.size();
}

/// The line of a key with more than kMostDots dots; 0: there is none. The parser makes a table of
/// each part, and comes to the end of its stack with some ten thousand.
std::uint32_t line_of_deep_key(std::string_view text) {
  std::size_t dots = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '"' || c == '\'') {
      at = end_of_quoted(text, at);
      continue;
    }
    if (c == '.' && ++dots > kMostDots) {
      const auto lines =
          std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      return static_cast<std::uint32_t>(lines + 1);
    }
    if (std::string_view("\n=,{}[]").find(c) != std::string_view::npos) dots = 0;
    ++at;
  }
  return 0;
}

}  // namespace

const ConfigNode* ConfigNode::find(std::string_view name) const {
  if (table() == nullptr) return nullptr;
  const auto& entries = table()->entries;
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [name](const ConfigNode& entry) { return entry.key == name; });
  return found == entries.end() ? nullptr : &*found;
}

std::string place(std::string_view name, std::uint32_t line, std::uint32_t column) {
  // What is missing stands nowhere: then the file alone is named.
  if (line == 0) return std::string(name);
  if (column == 0) return fmt::format("{}:{}", name, line);
  return fmt::format("{}:{}:{}", name, line, column);
}

Result<ConfigNode> parse_toml(std::string_view text, std::string_view name) {
  if (const std::uint32_t line = line_of_deep_key(text); line != 0) {
    return Error{ErrorCode::bad_configuration,
                 fmt::format("{}: a key: found more than {} dots; allowed: up to {}",
                             place(name, line, 0), kMostDots, kMostDots)};
  }
  try {
    return convert(toml::parse(text));
  } catch (const toml::parse_error& fault) {
    return complaint_of(fault, name);
  }
}

}  // namespace batchwright
