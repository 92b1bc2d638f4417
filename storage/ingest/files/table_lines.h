#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// Some editors put it before a text in UTF-8.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// What is made of one line, by its number from 1. Errors end the reading.
using TakeLine = std::function<Result<void>(std::size_t number, std::string_view line)>;

/// Reads a table, line by line: every table of this room. Lines end with LF, CR LF, or, in a file
/// without LF, CR. A byte order mark and empty lines are passed over. `what` stands before the path
/// in messages, such as "transcripts". Threads: any. Errors: invalid_argument, naming the file: it
/// cannot be read, or is UTF-16; and those of `take`.
Result<void> each_line(std::string_view what, const std::filesystem::path& path,
                       const TakeLine& take);

/// "WHAT PATH: WHY", as an error.
Error bad_table(std::string_view what, const std::filesystem::path& path, std::string_view why);

}  // namespace batchwright
