#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// The process that open() waits for: the writer of another process.
struct WriterWait {
  std::chrono::milliseconds waited{0};
  std::optional<int> process;  ///< Its number, unless it is in another PID namespace.
};

/// A record of more bytes cannot be written: LMDB writes it in one piece, and the kernel takes no
/// more than 2 GiB less a page at once.
inline constexpr std::uint64_t kMaxRecordBytes =
    (std::uint64_t{1} << 31) - (std::uint64_t{64} << 10);

/// The most that a writer holds before it commits automatically.
struct WriterLimits {
  std::uint64_t commit_bytes = std::uint64_t{64} << 20;
  std::uint64_t commit_sequences = 10'000;
  /// Address space to begin with; 0: 1 TiB or four times the file, or less where that is not
  /// to be had. It costs nothing until it is used, and grows by itself.
  std::uint64_t map_bytes = 0;
  /// The time that open() waits for a writer of another process; max(): until that one is gone.
  std::chrono::milliseconds wait = std::chrono::milliseconds::max();
  /// Called at once where open() has to wait, and ten times a second from then on, on the thread
  /// that called open(). False ends the wait. Empty: it just waits.
  std::function<bool(const WriterWait&)> waiting = {};
};

/// The state that open() expects.
enum class Opening : std::uint8_t {
  either,  ///< A dataset, or nothing.
  create,  ///< Nothing: already_exists where there is a dataset.
  append,  ///< A dataset: not_found where there is none, and nothing is made.
};

/// Appends sequences to one LMDB environment, which it creates when it is not there.
///
/// Appended sequences are kept in memory, up to the limits, until a commit writes them in one
/// transaction: sequences, keys, length index, state and generation become visible together. Killed
/// at any moment, the dataset is as of the last commit. The map grows by itself.
/// Threads: one at a time; it may move between threads.
/// One writer per dataset at a time, from open() on: another process waits for it in open().
class DatasetWriter {
 public:
  /// The fields must be those of the dataset; its settings stay what they were at its creation,
  /// and schema() tells them. A field may have more categories behind the dataset's, which the
  /// next commit with a sequence adds, or the first of them.
  /// Errors: invalid_argument (schema), schema_mismatch (the dataset has other fields), io_error,
  /// store_unavailable, unsupported_version, corrupt_record, busy (this process has a writer of
  /// it, or read it first and has a snapshot), timed_out (another process has a writer of it, and
  /// the wait for it ended), already_exists and not_found (see Opening).
  static Result<DatasetWriter> open(const std::filesystem::path& path, const Schema& schema,
                                    const WriterLimits& limits = {},
                                    Opening opening = Opening::either);

  DatasetWriter(DatasetWriter&&) noexcept;
  DatasetWriter& operator=(DatasetWriter&&) noexcept;
  ~DatasetWriter();  ///< Drops what was not committed.

  const Schema& schema() const;
  std::uint64_t sequences() const;      ///< Committed and pending.
  std::uint64_t committed() const;      ///< Sequences in the dataset, without pending ones.
  std::uint64_t pending_bytes() const;  ///< Of records that the next commit writes.

  /// Whether a sequence of this key is there, pending ones included. Errors: store_unavailable.
  Result<bool> contains(std::string_view key) const;

  /// Copies the sequence, and commits when a limit is reached.
  /// Errors: already_exists (names the key), schema_mismatch, does_not_fit (kMaxRecordBytes), and
  /// those of commit(). After any the writer is as if the call had not been made.
  Result<Ordinal> append(const Sequence& sequence);

  /// Makes what was appended durable and visible. Nothing to do is fine.
  /// Errors: io_error (a full disk is named, with the room that is left), busy (the map must grow
  /// and this process has a snapshot open), store_unavailable, corrupt_record (a damaged page: this
  /// process can no longer write the dataset). What was appended is kept: the call may be repeated.
  Result<void> commit();

 private:
  struct State;
  explicit DatasetWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace batchwright
