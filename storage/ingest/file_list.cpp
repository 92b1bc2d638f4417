#include "storage/ingest/file_list.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <system_error>

namespace batchwright {
namespace {

namespace fs = std::filesystem;

/// For extensions: recorders write ".WAV", too.
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

/// A folder, however it is reached.
struct FolderId {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FolderId&, const FolderId&) = default;
};

FolderId id_of(const fs::path& folder) {
  struct stat status = {};
  if (stat(folder.c_str(), &status) != 0) status = {};
  return {status.st_dev, status.st_ino};
}

/// The folders from the top down to the one that is being read, to notice a link back to one.
class Way {
 public:
  explicit Way(const fs::path& top) : folders_{id_of(top)} {}

  /// Goes into a folder found at `depth` below the top. False when it is one of those above it.
  bool enter(const fs::path& folder, int depth) {
    // Entries at depth d lie in the folder that was entered at d - 1: deeper ones have been left.
    folders_.resize(static_cast<std::size_t>(depth) + 1);
    const FolderId id = id_of(folder);
    if (std::find(folders_.begin(), folders_.end(), id) != folders_.end()) return false;
    folders_.push_back(id);
    return true;
  }

 private:
  std::vector<FolderId> folders_;
};

bool among(std::span<const std::string> names, const fs::path& path) {
  return std::find(names.begin(), names.end(), path.filename().string()) != names.end();
}

}  // namespace

Result<FileList> find_files(const fs::path& folder, std::span<const std::string_view> extensions,
                            std::span<const std::string> excluded) {
  std::error_code failed;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::follow_directory_symlink,
                                         failed);
  if (failed) return bad_folder(folder, failed.message());
  FileList list;
  Way way(folder);
  fs::path last = folder;  // where the iterator was when it fails
  while (entry != fs::recursive_directory_iterator()) {
    last = entry->path();
    std::error_code ignored;  // a link that leads nowhere is no file
    const std::string extension = lower(last.extension().string());
    if (among(excluded, last)) {
      entry.disable_recursion_pending();
    } else if (entry->is_directory(ignored)) {
      if (!way.enter(last, entry.depth())) {
        entry.disable_recursion_pending();
        ++list.loops;
      }
    } else if (!entry->is_regular_file(ignored)) {
      // neither
    } else if (std::find(extensions.begin(), extensions.end(), extension) != extensions.end()) {
      list.files.push_back({key_of(folder, last), last});
    } else {
      ++list.others[extension];
    }
    entry.increment(failed);
    if (failed) return bad_folder(last, failed.message());
  }
  if (list.files.empty()) {
    const std::string others = passed_over(list);
    return bad_folder(folder, fmt::format("no {} file below it{}{}", fmt::join(extensions, ", "),
                                          others.empty() ? "" : "; found: ", others));
  }
  // Bytes, not a locale's order: the ordinals must be the same on every machine.
  std::sort(list.files.begin(), list.files.end(), [](const SourceFile& a, const SourceFile& b) {
    return a.path.native() < b.path.native();
  });
  return list;
}

std::vector<const SourceFile*> spread_over(std::span<const SourceFile> files) {
  const std::size_t looks = std::min(files.size(), kMostLookedAt);
  std::vector<const SourceFile*> chosen;
  for (std::size_t i = 0; i < looks; ++i) chosen.push_back(&files[i * files.size() / looks]);
  return chosen;
}

void key_by_basename(FileList& list) {
  for (SourceFile& file : list.files) file.key = file.path.stem().string();
}

std::string passed_over(const FileList& list) {
  std::string text;
  for (const auto& [extension, count] : list.others) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count,
                        extension.empty() ? "without extension" : extension);
  }
  if (list.loops > 0) {
    text += fmt::format("{}{} links to a folder that they lie in", text.empty() ? "" : ", ",
                        list.loops);
  }
  return text;
}

}  // namespace batchwright
