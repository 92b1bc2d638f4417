#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"
#include "storage/ingest/file_list.h"

// An ingest that several tasks share: each takes a contiguous part of the sorted list of files into
// a dataset of its own, below one folder. The parts, in their order, are the shards of what one
// ingest makes.

namespace batchwright {

inline constexpr std::uint32_t kMostParts = 99'999;

/// IngestPart `number` of `count`, from 0.
struct IngestPart {
  std::uint32_t number = 0;
  std::uint32_t count = 1;
};

/// Reads "3/64". Errors: invalid_argument.
Result<IngestPart> read_part(std::string_view text);

/// "3/64".
std::string to_string(const IngestPart& part);

/// The dataset of a part below `folder`: part-00003-of-00064.
std::filesystem::path part_path(const std::filesystem::path& folder, const IngestPart& part);

/// The files of a part: the number of them differs by one at most.
std::span<const SourceFile> files_of(std::span<const SourceFile> all, const IngestPart& part);

/// What a finished part says of itself, in the file `finished` of its folder.
struct PartMark {
  std::uint64_t list = 0;       ///< Hash of the keys of all parts' files.
  std::uint64_t files = 0;      ///< Of all parts.
  std::uint64_t sequences = 0;  ///< Of this one.
};

/// The mark of a part whose files are of this list.
PartMark mark_of(std::span<const SourceFile> all, std::uint64_t sequences);

/// Puts the mark there, whole or not at all. Errors: io_error.
Result<void> write_mark(const std::filesystem::path& part, const PartMark& mark);

/// Nothing where the part is not finished. Errors: io_error; malformed_message for a file that is
/// no mark.
Result<std::optional<PartMark>> read_mark(const std::filesystem::path& part);

/// The datasets of all parts below `folder`, in their order, each finished, from one list of files
/// and with one schema and the same settings.
/// Errors: not_found (no part; parts that are missing or not finished, by number), invalid_argument
/// (parts of different counts or lists), schema_mismatch (names the setting and both values), and
/// those of opening a dataset.
Result<std::vector<std::filesystem::path>> find_parts(const std::filesystem::path& folder);

}  // namespace batchwright
