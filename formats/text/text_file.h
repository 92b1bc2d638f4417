#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>

#include "formats/result.h"

namespace batchwright {

/// The first `most` bytes of a file, or all of it; of one in /proc, what it says at this moment.
/// The streams of the C++ library would do the same, and bring all of its locales into a minimal
/// build. Threads: any. Errors: io_error, with the system's reason.
Result<std::string> file_text(const std::filesystem::path& path,
                              std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace batchwright
