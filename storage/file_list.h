#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// A file that is to become a sequence.
struct SourceFile {
  std::string key;  ///< Path relative to the folder, '/' between its parts, without extension.
  std::filesystem::path path;
};

/// The files below `folder`, however deep, whose extension is one of `extensions` (lower case,
/// with the dot; upper case in the name matches too), sorted by the bytes of their path, so that
/// a folder gives the same ordinals on every machine. Files and folders of a name in `excluded`
/// are left out. Links to files are followed, links to folders are not. Threads: any.
/// Errors: invalid_argument: no such folder, a folder that cannot be read, no such file below it.
Result<std::vector<SourceFile>> find_files(const std::filesystem::path& folder,
                                           std::span<const std::string_view> extensions,
                                           std::span<const std::string> excluded = {});

}  // namespace batchwright
