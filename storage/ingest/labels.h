#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The names that a field's values 0, 1, ... must have.
struct LabelSet {
  std::string field;  ///< Empty: of the only field of labels.
  std::vector<std::string> names;
  std::string origin;  ///< Their origin, for messages.
};

/// Names out of a file, one a line; empty lines, a byte order mark and CR are passed over.
/// Errors: invalid_argument, naming file and line: not readable, no name, a name twice.
Result<LabelSet> read_label_set(const std::filesystem::path& path);

/// The sets of a dataset's fields. Errors: those of Catalog::open(); invalid_argument: it has none.
Result<std::vector<LabelSet>> label_sets_of(const std::filesystem::path& dataset);

/// Names of one field, and their numbers.
class Labels {
 public:
  /// Names in this order and no others; what is added to them is refused.
  static Labels fixed(const LabelSet& set);
  /// Names that stay first; others are added behind them.
  static Labels open(const std::vector<std::string>& first);

  /// Adds names that are not there, in the order of their bytes.
  void add(std::span<const std::string> names);

  const std::vector<std::string>& names() const { return names_; }
  /// Errors: invalid_argument: the name is not in the set, which is named with its names.
  Result<const std::int32_t*> find(std::string_view name) const;

 private:
  void append(const std::string& name);

  std::vector<std::string> names_;
  std::map<std::string, std::int32_t, std::less<>> numbers_;
  std::string origin_;  // of a fixed set
};

}  // namespace batchwright
