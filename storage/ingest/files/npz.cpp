#include "storage/ingest/files/npz.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>

#include <array>
#include <memory>

#include "formats/formats.h"
#include "storage/ingest/files/npy.h"

namespace batchwright {
namespace {

/// Bytes read at once, of the archive and of a member.
constexpr std::size_t kBlockBytes = std::size_t{1} << 18;
constexpr std::string_view kExtension = ".npy";

struct FreeArchive {
  void operator()(archive* reader) const noexcept { archive_read_free(reader); }
};
using Archive = std::unique_ptr<archive, FreeArchive>;

Error bad_archive(std::string what) { return {ErrorCode::invalid_argument, std::move(what)}; }

/// libarchive's own words for its last failure.
Error failure(archive* reader) {
  const char* const text = archive_error_string(reader);
  return bad_archive(
      fmt::format("not readable as a zip archive: {}", text == nullptr ? "?" : text));
}

/// Reads by the directory at the archive's end, so that one which was cut is refused.
Archive zip_reader() {
  Archive reader(archive_read_new());
  if (reader) archive_read_support_format_zip_seekable(reader.get());
  return reader;
}

/// The member that the reader stands at. Memory grows with what is there, not with what the
/// archive promises.
Result<std::vector<std::byte>> read_member(archive* reader) {
  std::vector<std::byte> bytes;
  std::vector<std::byte> block(kBlockBytes);
  while (true) {
    const la_ssize_t got = archive_read_data(reader, block.data(), block.size());
    if (got < 0) return failure(reader);
    if (got == 0) return bytes;
    bytes.insert(bytes.end(), block.begin(), block.begin() + got);
  }
}

/// A member's name without ".npy"; empty when it is no array's.
std::string array_name(archive_entry* entry) {
  const char* const path = archive_entry_pathname(entry);
  std::string name = path == nullptr ? "" : path;
  if (!name.ends_with(kExtension)) return {};
  name.resize(name.size() - kExtension.size());
  return name;
}

/// One thread at a time: for a member's date libarchive asks the C library for the local time,
/// which reads its time zone again each time where the environment names none.
int next_header(archive* reader, archive_entry*& entry) {
  static Mutex mutex;
  const MutexLock lock(mutex);
  return archive_read_next_header(reader, &entry);
}

/// All wanted arrays of an archive that was opened.
Result<std::vector<NamedArray>> read_arrays(archive* reader, const NpzChoice& wanted) {
  std::vector<NamedArray> arrays;
  archive_entry* entry = nullptr;
  while (true) {
    const int code = next_header(reader, entry);
    if (code == ARCHIVE_EOF) return arrays;
    // After a warning the member can still be read, and its data are checked by themselves.
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return failure(reader);
    std::string name = array_name(entry);
    // Passed over unread: libarchive goes on by the directory at the end.
    if (name.empty() || !wanted(name)) continue;
    if (archive_entry_is_encrypted(entry) != 0) {
      return bad_archive(fmt::format("array \"{}\": encrypted", printable(name)));
    }
    const auto bytes = read_member(reader);
    auto array = bytes ? parse_npy(*bytes) : Result<Array>(bytes.error());
    if (!array) {
      return bad_archive(fmt::format("array \"{}\": {}", printable(name), array.error().message));
    }
    arrays.push_back({std::move(name), std::move(*array)});
  }
}

}  // namespace

Result<std::vector<NamedArray>> parse_npz(std::span<const std::byte> bytes,
                                          const NpzChoice& wanted) {
  const Archive reader = zip_reader();
  if (!reader) return bad_archive("no memory for an archive");
  if (archive_read_open_memory(reader.get(), bytes.data(), bytes.size()) != ARCHIVE_OK) {
    return failure(reader.get());
  }
  return read_arrays(reader.get(), wanted);
}

Result<std::vector<NamedArray>> read_npz(const std::filesystem::path& path,
                                         const NpzChoice& wanted) {
  const Archive reader = zip_reader();
  if (!reader) return bad_archive("no memory for an archive");
  const bool open =
      archive_read_open_filename(reader.get(), path.c_str(), kBlockBytes) == ARCHIVE_OK;
  auto arrays = open ? read_arrays(reader.get(), wanted)
                     : Result<std::vector<NamedArray>>(failure(reader.get()));
  if (!arrays) return bad_archive(fmt::format("{}: {}", path.string(), arrays.error().message));
  return arrays;
}

}  // namespace batchwright
