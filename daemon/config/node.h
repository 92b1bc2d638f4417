#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// A value of a TOML text and where it stands, so that one file alone knows the parser.
struct ConfigNode {
  using List = std::vector<ConfigNode>;
  struct Table {
    std::vector<ConfigNode> entries;  ///< In the order of their keys.
  };
  struct Moment {};  ///< A date or a time: no key takes one.

  std::string key;           ///< Within its table; empty for an element of a list.
  std::uint32_t line = 0;    ///< Of the key, or of the element, from 1; 0: unknown.
  std::uint32_t column = 0;  ///< From 1.
  std::variant<bool, std::int64_t, double, std::string, List, Table, Moment> value;

  const Table* table() const { return std::get_if<Table>(&value); }
  const List* list() const { return std::get_if<List>(&value); }
  /// The entry of a table; null when this is none, or has none of that name.
  const ConfigNode* find(std::string_view name) const;
  const std::string* text() const { return std::get_if<std::string>(&value); }
};

/// The whole text, a table. Errors: bad_configuration: "NAME:LINE:COLUMN: what is wrong".
Result<ConfigNode> parse_toml(std::string_view text, std::string_view name);

/// "NAME:LINE:COLUMN", as far as it is known.
std::string place(std::string_view name, std::uint32_t line, std::uint32_t column);

}  // namespace batchwright
