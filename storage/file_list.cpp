#include "storage/file_list.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <system_error>

namespace batchwright {
namespace {

namespace fs = std::filesystem;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Error bad_folder(const fs::path& folder, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("{}: {}", folder.string(), why)};
}

std::string key_of(const fs::path& folder, const fs::path& file) {
  return file.lexically_relative(folder).replace_extension().generic_string();
}

}  // namespace

Result<std::vector<SourceFile>> find_files(const fs::path& folder,
                                           std::span<const std::string_view> extensions,
                                           std::span<const std::string> excluded) {
  std::error_code failed;
  fs::recursive_directory_iterator entry(folder, failed);
  if (failed) return bad_folder(folder, failed.message());
  std::vector<SourceFile> files;
  fs::path last = folder;  // where the iterator was when it fails
  while (entry != fs::recursive_directory_iterator()) {
    last = entry->path();
    std::error_code ignored;  // a link that leads nowhere is no file
    if (std::find(excluded.begin(), excluded.end(), last.filename().string()) != excluded.end()) {
      entry.disable_recursion_pending();
    } else if (std::find(extensions.begin(), extensions.end(), lower(last.extension().string())) !=
                   extensions.end() &&
               entry->is_regular_file(ignored)) {
      files.push_back({key_of(folder, last), last});
    }
    entry.increment(failed);
    if (failed) return bad_folder(last, failed.message());
  }
  if (files.empty()) {
    return bad_folder(folder, fmt::format("no {} file below it", fmt::join(extensions, ", ")));
  }
  std::sort(files.begin(), files.end(), [](const SourceFile& a, const SourceFile& b) {
    return a.path.native() < b.path.native();
  });
  return files;
}

}  // namespace batchwright
