#include "storage/ingest/files/table_lines.h"

#include <fmt/core.h>

#include <fstream>
#include <string>

namespace batchwright {

Error bad_table(std::string_view what, const std::filesystem::path& path, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("{} {}: {}", what, path.string(), why)};
}

Result<void> each_line(std::string_view what, const std::filesystem::path& path,
                       const TakeLine& take) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::ifstream file(path);
  if (!file) return bad_table(what, path, "cannot be opened");
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    std::string_view rest = line;
    // Editors on Windows leave a byte order mark and CR, which belong to no key and no text.
    if (number == 1 && rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
    if (rest.ends_with('\r')) rest.remove_suffix(1);
    if (rest.empty()) continue;
    if (auto taken = take(number, rest); !taken) return taken;
  }
  if (file.bad()) return bad_table(what, path, "cannot be read");
  return {};
}

}  // namespace batchwright
