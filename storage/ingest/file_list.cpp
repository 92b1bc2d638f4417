#include "storage/ingest/file_list.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <compare>
#include <set>
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
  friend auto operator<=>(const FolderId&, const FolderId&) = default;
};

FolderId id_of(const fs::path& folder) {
  struct stat status = {};
  if (stat(folder.c_str(), &status) != 0) status = {};
  return {status.st_dev, status.st_ino};
}

bool among(std::span<const std::string> names, const fs::path& path) {
  return std::find(names.begin(), names.end(), path.filename().string()) != names.end();
}

/// Why a link leads to nothing.
std::string broken(const fs::path& link) {
  std::error_code ignored;  // the link is there; where it leads is told as far as is known
  return fmt::format("a link that leads nowhere (to {})", fs::read_symlink(link, ignored).string());
}

/// A reading of a folder and all that lies below it or is linked there.
///
/// Two passes: the first takes the folders that really lie there, the second those that only links
/// lead to. Each takes the path that sorts first of those that are known: a path sorts behind the
/// folder that it lies in, so no later find can sort before it.
class Walk {
 public:
  Walk(const fs::path& top, std::span<const std::string_view> extensions,
       std::span<const std::string> excluded, FileList& list)
      : top_(top), extensions_(extensions), excluded_(excluded), list_(list) {}

  Result<void> all() {
    due_.insert(top_.native());
    if (auto taken = take_due(links_); !taken) return taken;
    due_.swap(links_);
    return take_due(due_);
  }

 private:
  using Paths = std::set<std::string>;

  /// Reads the folders that are due. Links to folders that it finds are put into `links`.
  Result<void> take_due(Paths& links) {
    while (!due_.empty()) {
      const fs::path folder = std::move(due_.extract(due_.begin()).value());
      if (!taken_.insert(id_of(folder)).second) {
        if (list_.folders_again++ == 0) list_.again = folder.string();
        continue;
      }
      std::error_code failed;
      fs::directory_iterator entry(folder, failed);
      for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
        take(*entry, links);
      }
      if (failed) return bad_folder(folder, failed.message());
    }
    return {};
  }

  void take(const fs::directory_entry& entry, Paths& links) {
    const fs::path& path = entry.path();
    // No data anywhere: what other systems and programs keep for themselves.
    if (path.filename().native().starts_with('.')) {
      ++list_.hidden;
      return;
    }
    if (among(excluded_, path)) return;
    std::error_code failed;
    const fs::file_type type = entry.status(failed).type();
    const bool is_link = entry.is_symlink(failed);
    if (type == fs::file_type::directory) {
      (is_link ? links : due_).insert(path.native());
      return;
    }
    const std::string extension = lower(path.extension().string());
    const bool wanted =
        std::find(extensions_.begin(), extensions_.end(), extension) != extensions_.end();
    if (wanted) {
      SourceFile file{key_of(top_, path), path};
      if (type != fs::file_type::regular) {
        const bool gone = type == fs::file_type::not_found || type == fs::file_type::none;
        file.unusable = is_link && gone ? broken(path) : "not a regular file";
      }
      list_.files.push_back(std::move(file));
    } else if (type == fs::file_type::not_found || type == fs::file_type::none) {
      if (list_.broken_links++ == 0) list_.broken_link = path.string();
    } else {
      ++list_.others[extension];
    }
  }

  const fs::path& top_;
  const std::span<const std::string_view> extensions_;
  const std::span<const std::string> excluded_;
  FileList& list_;
  Paths due_;    // folders to be read
  Paths links_;  // found in the first pass, for the second
  std::set<FolderId> taken_;
};

}  // namespace

Result<FileList> find_files(const fs::path& folder, std::span<const std::string_view> extensions,
                            std::span<const std::string> excluded) {
  FileList list;
  if (auto walked = Walk(folder, extensions, excluded, list).all(); !walked) return walked.error();
  if (list.files.empty()) {
    std::string why = fmt::format("no {} file below it", fmt::join(extensions, ", "));
    if (const auto others = passed_over(list); !others.empty()) why += "; found: " + others;
    if (const auto out = left_out(list); !out.empty()) why += "; left out: " + out;
    return bad_folder(folder, why);
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

std::string_view key_of_all_channels(const SourceFile& file) {
  const std::string_view key = file.key;
  const std::string number = fmt::format("#{}", file.part.channel);
  return file.part.channel > 0 && key.ends_with(number) ? key.substr(0, key.size() - number.size())
                                                        : key;
}

std::string passed_over(const FileList& list) {
  std::vector<std::string> parts;
  for (const auto& [extension, count] : list.others) {
    parts.push_back(
        fmt::format("{} {}", count, extension.empty() ? "without extension" : extension));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string left_out(const FileList& list) {
  std::vector<std::string> parts;
  const auto add = [&parts](std::uint64_t count, std::string_view what, const std::string& first) {
    if (count == 0) return;
    parts.push_back(
        fmt::format("{} {}{}", count, what, first.empty() ? "" : fmt::format(" ({})", first)));
  };
  const auto such_as = [](std::uint64_t count, const std::string& first) {
    return printable((count > 1 ? "the first: " : "") + first);
  };
  add(list.hidden, "whose names begin with a dot", "");
  add(list.folders_again, "paths to folders that are read by another one",
      such_as(list.folders_again, list.again));
  add(list.broken_links, "links that lead nowhere", such_as(list.broken_links, list.broken_link));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace batchwright
