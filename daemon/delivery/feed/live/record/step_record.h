#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "daemon/delivery/feed/kept_file.h"
#include "daemon/delivery/feed/live/record/recorded_step.h"
#include "formats/formats.h"
#include "storage/dataset/dataset.h"

namespace batchwright {

/// The file beside a dataset of recorded steps that has their order.
std::filesystem::path order_file_of(const std::filesystem::path& dataset);

/// What a live feed has delivered: a dataset, and an order file beside it. A feed of that dataset
/// with order = file and cut = file delivers the same batches again.
///
/// The lines of a step are on the disk before its sequences are committed: so the file names all
/// that was committed, whichever process dies and whenever the power is cut. open() cuts off the
/// lines of steps of which the dataset lacks a sequence.
/// Threads: one at a time; it may go from thread to thread. All but the getters wait for the disk.
class StepRecord {
 public:
  /// Opens both, or begins them. Steps have `world` batches. Errors: io_error, schema_mismatch (the
  /// dataset has other fields), timed_out (another process writes it), busy (this process reads or
  /// writes it), bad_configuration (the order file is of steps of another world, or of no record),
  /// and the others of DatasetWriter::open().
  static Result<std::unique_ptr<StepRecord>> open(const std::filesystem::path& dataset,
                                                  const Schema& schema, std::uint32_t world);

  /// How many the dataset has: the ordinal of the next one.
  std::uint64_t sequences() const { return writer_.sequences(); }
  /// "record PATH".
  std::string name() const { return "record " + path_.string(); }

  /// Has them on the disk. Errors: those of DatasetWriter::append() and commit(), io_error. Then
  /// nothing more may be written.
  Result<void> write(std::span<const RecordedStep* const> steps);

 private:
  StepRecord(std::filesystem::path path, DatasetWriter writer, std::unique_ptr<KeptFile> order,
             std::uint64_t order_bytes)
      : path_(std::move(path)),
        writer_(std::move(writer)),
        order_(std::move(order)),
        order_bytes_(order_bytes) {}
  Result<void> write_all(std::span<const RecordedStep* const> steps);
  Result<void> append(const RecordedStep& step);
  Result<std::string> free_key(const std::string& key, Ordinal ordinal) const;

  std::filesystem::path path_;
  DatasetWriter writer_;
  std::unique_ptr<KeptFile> order_;
  std::uint64_t order_bytes_;  ///< Of the steps that are committed.
};

}  // namespace batchwright
