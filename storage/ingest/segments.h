#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/formats.h"
#include "storage/ingest/file_list.h"

namespace batchwright {

/// Files cut into the segments of a table.
struct Segments {
  /// A segment each, by file in the order of the files, and within one by the lines of the table:
  /// what is read is read forwards.
  std::vector<SourceFile> files;
  /// Recordings of the table that are none of the files, as text; empty when there are none.
  std::string unmatched;
  std::uint64_t files_without = 0;  ///< Files of which the table has no segment.
};

/// Reads a table of segments, as Kaldi's `segments`: key, recording, begin and end in seconds,
/// divided by blanks, or by TABs where a line has one; an end of -1 is that of the recording. The
/// recording is the key of a file, or the last part of one that no other file has; `by_channel`,
/// also that with '#' and the number of a channel behind it. Empty lines are passed over. Threads:
/// any. Errors: invalid_argument, naming table and line: not readable, not four columns, times that
/// are none, a key twice; or none of the recordings is among `files`.
Result<Segments> read_segments(const std::filesystem::path& table,
                               std::span<const SourceFile> files, bool by_channel = false);

/// Puts all channels of a file in its place, in their order, as "KEY#1", "KEY#2", ...; of one
/// channel, too, so that keys do not depend on what is in other files. Those of which a channel was
/// chosen stay. A file whose header cannot be read is one, and unusable. Headers are read on up to
/// `threads` threads, once for segments that stand by file.
std::vector<SourceFile> by_channels(std::vector<SourceFile> files, unsigned threads);

/// Files of sound that were opened, kept for those behind: what memory a sequence takes is asked
/// for before it is loaded, and a recording of many segments is looked at once.
/// Threads: any number at once; of several that ask for one file, one opens it.
class SoundFiles {
 public:
  using Opened = Result<std::shared_ptr<const SoundFile>>;

  /// Each has a descriptor. Segments stand by file, so that none is opened again soon.
  static constexpr std::size_t kMostKept = 128;

  /// Errors: those of SoundFile::open().
  Opened get(const std::filesystem::path& path);

 private:
  struct Entry {
    Mutex mutex;  // held while it is opened
    std::optional<Opened> opened GUARDED_BY(mutex);
  };

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_ GUARDED_BY(mutex_);
  std::deque<std::string> order_ GUARDED_BY(mutex_);  // the oldest first
};

}  // namespace batchwright
