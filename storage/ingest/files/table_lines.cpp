#include "storage/ingest/files/table_lines.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace batchwright {

namespace {

/// A line without the CR that editors on Windows leave, which belongs to no key and no text.
Result<void> take_one(std::size_t number, std::string_view line, const TakeLine& take) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.empty() ? Result<void>() : take(number, line);
}

/// The lines of a file that ends them with CR alone.
Result<void> take_each(std::string_view text, const TakeLine& take) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\r'), text.size());
    if (auto taken = take_one(number, text.substr(0, end), take); !taken) return taken;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

}  // namespace

Error bad_table(std::string_view what, const std::filesystem::path& path, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("{} {}: {}", what, path.string(), why)};
}

Result<void> each_line(std::string_view what, const std::filesystem::path& path,
                       const TakeLine& take) {
  std::ifstream file(path);
  if (!file) return bad_table(what, path, "cannot be opened");
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    std::string_view rest = line;
    if (number == 1) {
      if (rest.starts_with("\xFF\xFE") || rest.starts_with("\xFE\xFF")) {
        return bad_table(what, path, "it is UTF-16; allowed: UTF-8 (iconv -f UTF-16 -t UTF-8)");
      }
      if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
      // No LF in all of the file: its lines end with CR.
      if (file.eof()) return take_each(rest, take);
    }
    if (auto taken = take_one(number, rest, take); !taken) return taken;
  }
  if (file.bad()) return bad_table(what, path, "cannot be read");
  return {};
}

}  // namespace batchwright
