#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "formats/formats.h"

namespace batchwright {

/// How much a writer holds before it commits by itself.
struct WriterLimits {
  std::uint64_t commit_bytes = std::uint64_t{64} << 20;
  std::uint64_t commit_sequences = 10'000;
};

/// Appends sequences to one LMDB environment, which it creates when it is not there.
///
/// A commit makes sequences, keys, length index, state and generation visible together; killed at
/// any moment, the dataset is as of the last commit. The map grows by itself.
/// Threads: one at a time. One writer per dataset at a time, across processes too (LMDB's lock):
/// a second waits.
class DatasetWriter {
 public:
  /// Errors: invalid_argument (schema), schema_mismatch (the dataset has another), io_error,
  /// store_unavailable, unsupported_version.
  static Result<DatasetWriter> open(const std::filesystem::path& path, const Schema& schema,
                                    const WriterLimits& limits = {});

  DatasetWriter(DatasetWriter&&) noexcept;
  DatasetWriter& operator=(DatasetWriter&&) noexcept;
  ~DatasetWriter();  ///< Drops what was not committed.

  const Schema& schema() const;
  std::uint64_t sequences() const;  ///< Committed and pending.

  /// Whether a sequence of this key is there, pending ones included. Errors: store_unavailable.
  Result<bool> contains(std::string_view key) const;

  /// Copies the sequence into the transaction and commits when a limit is reached.
  /// Errors: already_exists (names the key), schema_mismatch, io_error (disk full). After the
  /// first two the writer goes on as if the call had not been made.
  Result<Ordinal> append(const Sequence& sequence);

  /// Makes what was appended durable and visible. Nothing to do is fine.
  Result<void> commit();

 private:
  struct State;
  explicit DatasetWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace batchwright
