#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <string>
#include <vector>

#include "daemon/planning/planning.h"
#include "formats/formats.h"

namespace batchwright {

/// The lengths of one or several datasets, one after the other.
struct PlanLengths {
  std::vector<std::uint32_t> frames;
  std::vector<std::uint64_t> datasets;  ///< The number of lengths of each dataset.
};

/// Appends a list of lengths: text, one length a line, nothing else.
/// Errors: invalid_argument, with file and line named.
Result<void> append_length_list(std::istream& in, const std::string& file, PlanLengths& lengths);

/// Appends the list in `file`, or on standard input for `-`.
/// Errors: not_found; as append_length_list().
Result<void> append_length_file(const std::string& file, PlanLengths& lengths);

/// Appends the lengths of datasets that a feed could serve together, and reads the order file of
/// `settings`, if there is one, for them.
/// Errors: those of opening them; schema_mismatch (one has other fields than the first); those of
/// read_order().
Result<void> append_datasets(const std::vector<std::filesystem::path>& datasets,
                             PlanLengths& lengths, PlanSettings& settings);

}  // namespace batchwright
