#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "storage/features/frontend/frontend.h"

namespace batchwright {

/// Sums over a dataset for CMVN, as `batchwright cmvn` makes them: of all frames, and of each
/// speaker's.
struct CmvnStatistics {
  /// What the frames were made by: recipe_text() of the recipe without what changes at random.
  std::string made_by;
  CmvnSums all{0};
  std::map<std::string, CmvnSums, std::less<>> speakers;  ///< By the field's value as text.
};

/// A file that another program can read: lines of words, with a checksum. It is replaced at once,
/// so that a program that reads it meanwhile has the old one or the new one. One without a checksum
/// is read as well. Errors: io_error (writing), bad_configuration (reading: line, what was found).
Result<void> write_statistics(const std::filesystem::path& path, const CmvnStatistics& statistics);
Result<CmvnStatistics> read_statistics(const std::filesystem::path& path);

/// FNV-1a of the sums, for fingerprints.
std::uint64_t content_of(const CmvnStatistics& statistics);

}  // namespace batchwright
