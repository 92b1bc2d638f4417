#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "formats/base/result.h"

namespace batchwright {

/// The first `most` bytes of a file, or all of it; of one in /proc, what it says at this moment.
/// The streams of the C++ library would do the same, and bring all of its locales into a minimal
/// build. Threads: any. Errors: io_error, with the system's reason.
Result<std::string> file_text(const std::filesystem::path& path,
                              std::size_t most = std::numeric_limits<std::size_t>::max());

/// Puts a file with this text at `path`: at any moment there is the old one or the new one, whole.
/// It is written as PATH.new, whatever is there, with `mode` less the umask; `prepare` gives that
/// file its access, say, before it gets its name. Nothing is synced. Threads: any. Errors:
/// io_error, with the system's reason; those of `prepare`. The old one stays then.
Result<void> put_file(const std::filesystem::path& path, std::string_view text, mode_t mode,
                      const std::function<Result<void>(const std::string&)>& prepare = nullptr);

}  // namespace batchwright
