#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"
#include "storage/features/sound/sound.h"

namespace batchwright {

/// A file that is to become a sequence, or a part of one, or one of its channels.
struct SourceFile {
  /// The path relative to the folder, '/' between its parts, without extension; or the name alone;
  /// or that of a segment; of a channel with '#' and its number behind that.
  std::string key;
  std::filesystem::path path;
  SoundPart part = {};        ///< Of sound.
  std::string unusable = {};  ///< The reason why there is nothing to read; mostly empty.
};

struct FileList {
  std::vector<SourceFile> files;
  /// Files that were passed over, by extension (lower case, with the dot; empty: without one).
  std::map<std::string, std::uint64_t> others;
  std::uint64_t hidden = 0;  ///< Files and folders whose names begin with a dot, left out.
  /// Folders that are there once more by another path, mostly a link: not read again.
  std::uint64_t folders_again = 0;
  std::string again = {};  ///< The path of the first of these.
  /// Links that lead nowhere, of another extension: what they stood for is not known.
  std::uint64_t broken_links = 0;
  std::string broken_link = {};  ///< The first of these.
};

/// The files below `folder`, however deep, whose extension is one of `extensions` (lower case,
/// with the dot; upper case in the name matches too), sorted by the bytes of their path, so that
/// a folder gives the same ordinals on every machine. Files and folders of a name in `excluded`
/// are left out, and those whose name begins with a dot.
///
/// Links are followed. A folder (by device and inode) is read once: by its real path where that
/// lies below `folder`, otherwise by the path that sorts first. A file counts under each of its
/// names, since there are folders all of whose files are links. A link that leads nowhere, or to
/// no regular file, is in the list if its extension is, as `unusable`. Threads: any.
/// Errors: invalid_argument: no such folder, a folder that cannot be read, no such file below it.
Result<FileList> find_files(const std::filesystem::path& folder,
                            std::span<const std::string_view> extensions,
                            std::span<const std::string> excluded = {});

/// Files whose headers are read to learn what most of a list, or any of it, are like.
inline constexpr std::size_t kMostLookedAt = 256;

/// Up to kMostLookedAt of the files, spread evenly over the list: files that are alike often lie
/// together.
std::vector<const SourceFile*> spread_over(std::span<const SourceFile> files);

/// Has every key be the name of its file without extension, whatever folder it lies in.
void key_by_basename(FileList& list);

/// The key without the number of a channel: what tables call a file that is not cut into channels.
std::string_view key_of_all_channels(const SourceFile& file);

/// "12 .mp3, 1 without extension"; empty when nothing was passed over.
std::string passed_over(const FileList& list);

/// "2 whose names begin with a dot", and what else was not looked at; empty when all was.
std::string left_out(const FileList& list);

}  // namespace batchwright
