#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/formats.h"
#include "storage/dataset/dataset.h"
#include "storage/ingest/annotations.h"
#include "storage/ingest/file_list.h"
#include "storage/ingest/ingest_source.h"
#include "storage/ingest/manifest.h"
#include "storage/ingest/parts.h"
#include "storage/ingest/segments.h"

namespace batchwright {

/// The effect of a file that cannot be taken on the rest.
enum class OnError : std::uint8_t {
  stop,  ///< Files before it are committed, files behind it are not looked at.
  skip,  ///< It is listed, and the rest goes on.
};

/// Files, and the dataset that they go into. What it points to outlives the call.
struct IngestJob {
  const IngestSource* source = nullptr;
  const Annotations* annotations = nullptr;
  std::span<const SourceFile> files;
  std::filesystem::path dataset;
  /// Settings beside the source's own, such as where the files come from. They are kept when the
  /// dataset is made, and not compared when it is there.
  std::vector<std::pair<std::string, std::string>> origin;
  OnError on_error = OnError::stop;
  bool resume = false;   ///< Files whose key is in the dataset are passed over.
  unsigned threads = 1;  ///< Threads that load files, beside the caller's, which writes.
  WriterLimits limits;
  /// These files are a part of what several tasks ingest: that none can be taken is no failure.
  bool is_part = false;
};

struct IngestFigures {
  std::uint64_t files = 0;    ///< Files to be taken, without those passed over.
  std::uint64_t present = 0;  ///< Passed over, since their key is there.
  std::uint64_t taken = 0;    ///< Given to the writer, whether or not committed yet.
  std::uint64_t skipped = 0;
  // What a commit has written, and thus is in the dataset:
  std::uint64_t added = 0;   ///< Sequences.
  std::uint64_t frames = 0;  ///< Their frames.
  double seconds = 0;        ///< Seconds of audio.
  // Of those given to the writer:
  std::uint64_t clipped_samples = 0;  ///< Samples beyond what their type holds, cut to its bounds.
  std::uint64_t clipped_files = 0;    ///< Files that have such samples.
  std::uint64_t cancelled_files = 0;  ///< Files whose channels cancel out in their mean.
};

struct IngestReport {
  IngestFigures figures;
  std::vector<std::string> skipped;  ///< "file: reason", one a file.
  /// What sources said of sequences that were taken: "3 sequences: WHAT, such as WHERE", each once.
  std::vector<std::string> remarks;
  std::string first_clipped;    ///< A file of IngestFigures::clipped_files.
  std::string first_cancelled;  ///< A file of IngestFigures::cancelled_files.
  /// The error that stopped it, or the lack of any usable file; empty: it succeeded.
  std::optional<Error> failure;
  bool interrupted = false;  ///< `watch` has ended it.
};

/// The schema of a dataset that is to be appended to; nothing when there is none that can be
/// read, which DatasetWriter::open() will say.
std::optional<Schema> present_schema(const std::filesystem::path& dataset);

/// Called after each file on the caller's thread; false ends the ingest as if there were no more.
using IngestWatch = std::function<bool(const IngestFigures&)>;

/// Appends the files in their order. Whatever ends it, sequences added are committed if the
/// dataset can still be written; killed, it leaves what the last commit had.
/// Errors: those of DatasetWriter::open(); schema_mismatch when the dataset was made with other
/// settings, or by a program that has none or more of them (names the first). All that happens
/// later is in the report.
Result<IngestReport> ingest(const IngestJob& job, const IngestWatch& watch);

}  // namespace batchwright
