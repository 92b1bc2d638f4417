#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "formats/formats.h"
#include "storage/dataset/lmdb/map_lock.h"
#include "storage/dataset/lmdb/map_pages.h"

namespace batchwright {

/// The frequency at which a record's CRC-32C is compared with its bytes.
enum class VerifyRecords : std::uint8_t {
  once,    ///< The first time this dataset object reads it. One bit of memory a sequence.
  always,  ///< Verify at every read: costs a second pass over the bytes.
  never,   ///< Structure and bounds only.
};

/// What of the length index a snapshot holds in memory, beside the lengths.
enum class Holding : std::uint8_t {
  lengths,  ///< Nothing.
  /// Each record's CRC-32C, where the dataset has it: 4 bytes a sequence. A record that carries
  /// another one is refused, whatever else is verified.
  checksums,
};

/// What has become of the files that a snapshot shows, the worst last.
enum class DataStanding : std::uint8_t {
  current,      ///< They are there, as they were or with more behind.
  removed,      ///< The path leads to no data.mdb. The snapshot goes on showing what it did.
  replaced,     ///< The path leads to another data.mdb. The same.
  overwritten,  ///< Their bytes are others: the snapshot can be used no longer.
};

/// That of a dataset's worst shard, and what happened to it in words; empty when it is current.
struct DatasetStanding {
  DataStanding standing = DataStanding::current;
  std::string why = {};
};

/// Where a record lies.
struct RecordPlace {
  MapBytes bytes;            ///< In the map; records of one file lie in it as in the file.
  std::uint64_t device = 0;  ///< The disk that holds them (st_dev of their file).
};

/// A frozen view of a dataset: one read transaction per shard, their sequences counted on from
/// shard to shard. The bytes it hands out point into the memory map.
///
/// Lifetime: those bytes, and all spans, are valid until the snapshot is destroyed, no longer.
///   Keep one an epoch: an old snapshot stops a writer from reusing pages.
/// Threads: any number at once. Look-ups are serialised inside, bytes are read outside the lock.
class Snapshot {
 public:
  virtual ~Snapshot() = default;

  virtual const Schema& schema() const = 0;
  virtual std::uint64_t sequences() const = 0;
  /// The number of them in each shard, in the order of the shards.
  virtual std::span<const std::uint64_t> shard_sequences() const = 0;
  virtual std::uint64_t generation() const = 0;  ///< Sum over the shards.
  virtual std::uint64_t content() const = 0;     ///< Content fingerprint, order of shards included.

  /// Length T of every sequence, in frames, by ordinal.
  virtual std::span<const std::uint32_t> lengths() const = 0;
  /// Length U of every sequence in an independent field; empty for a field of another kind.
  virtual std::span<const std::uint32_t> field_lengths(std::size_t field) const = 0;
  /// Bytes of every key.
  virtual std::span<const std::uint16_t> key_bytes() const = 0;

  /// The record of `ordinal`, verified as the dataset's settings say, and in accord with the
  /// lengths above. Its own ordinal() counts within its shard. May wait for the disk, so it is
  /// never called on the event loop. Its accessors read the map, as its bytes are in the map: where
  /// the file may be cut by others, use them under guarded() (fault_guard.h), and copy by
  /// copy_from_map().
  /// Errors: not_found; corrupt_record (names key or ordinal and shard); store_unavailable when
  /// the map faults because the file shrank or the disk failed; fingerprint_mismatch where it is a
  /// record of other content. The snapshot stays usable, except after the last.
  virtual Result<RecordView> record(Ordinal ordinal) const = 0;
  /// The same where place() has found the record, without looking it up a second time.
  virtual Result<RecordView> record(Ordinal ordinal, const RecordPlace& place) const = 0;

  /// Whether all that was read since this snapshot was taken is what it was then: bytes that were
  /// read from the map are to be trusted only after this. Cheap. Errors: store_unavailable (a
  /// writer wrote over the snapshot, which has no lock); fingerprint_mismatch (the file was
  /// overwritten in place, as far as its state tells).
  virtual Result<void> check_unchanged() const { return {}; }
  /// Compares the files that the paths lead to now, and their state, with those that are shown. May
  /// wait for the disk.
  virtual DatasetStanding standing() const { return {}; }

  /// Where the record of `ordinal` lies; empty where it cannot be found, for which record() has
  /// the reason. Does not read the record, but may wait for the tree's pages.
  virtual std::optional<RecordPlace> place(Ordinal ordinal) const = 0;
  /// The first sequence of this key, in the order of the shards; nothing when there is none. May
  /// wait for the disk. Errors: corrupt_record, store_unavailable.
  virtual Result<std::optional<Ordinal>> find(std::string_view key) const = 0;
  /// Gives the memory of the record's pages back to the kernel. Pages that other records share
  /// stay. May wait for the tree's pages.
  virtual void let_go(Ordinal ordinal) const = 0;
  /// Bytes of the dataset's files.
  virtual std::uint64_t file_bytes() const = 0;

  /// Brings the pages that look-ups go through into memory, where they take `most_bytes` or less:
  /// otherwise look-ups wait for them, one after the other. Several are waited for at once, and
  /// look-ups go on meanwhile. What cannot be read is left to those. Blocks, until `stop` is
  /// requested.
  virtual void bring_in_tree(std::uint64_t /*most_bytes*/, const std::stop_token& /*stop*/) const {}
};

/// Copies bytes that lie in a memory map. A fault of the map (file truncated, disk error) comes
/// back as store_unavailable instead of SIGBUS. Threads: any.
Result<void> copy_from_map(std::span<std::byte> to, std::span<const std::byte> from);

/// The fields of a record that lies in a memory map, one for each of `values`, whose bytes stay in
/// the map. Errors and threads: as copy_from_map().
Result<void> fields_from_map(const RecordView& record, std::span<FieldValue> values);

/// An ordered list of LMDB environments with one schema, open for reading.
/// Threads: any; calls are cheap except for snapshots, which read the length index.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const std::vector<std::filesystem::path>& shards() const = 0;
  virtual const Schema& schema() const = 0;
  /// The protection of the pages that snapshots read from writers: that of the least protected
  /// shard.
  virtual MapLock lock() const = 0;
  /// A snapshot of the current commit. Reads megabytes for ten million sequences, not gigabytes.
  /// Errors: store_unavailable, corrupt_record (damaged index), does_not_fit (reader slots),
  /// fingerprint_mismatch (what is there now was not appended to what was).
  virtual Result<std::shared_ptr<const Snapshot>> snapshot() = 0;
  /// The dataset as it was at the commit with this content(): all figures, lengths and sequences
  /// are those of an earlier snapshot(), and later sequences are not in it. FORMAT.md says how far
  /// back the history reaches. Costs as much as snapshot().
  /// Errors: not_found, which says what the dataset has; those of snapshot().
  virtual Result<std::shared_ptr<const Snapshot>> snapshot_at(std::uint64_t content) = 0;
  /// How many commits each shard remembers beside its newest, except for those without sequences.
  /// Errors: those of snapshot().
  virtual Result<std::vector<std::size_t>> earlier_commits() = 0;
  /// The dataset with each shard so many commits behind its newest: one number a shard, at most
  /// that of earlier_commits(), or the oldest is taken. Costs as much as snapshot(). Errors: those
  /// of snapshot().
  virtual Result<std::shared_ptr<const Snapshot>> snapshot_behind(
      std::span<const std::size_t> commits) = 0;
};

/// Opens datasets, and sees to it that a process has each LMDB environment open at most once.
/// A process keeps one catalog. Threads: any.
class Catalog {
 public:
  Catalog();
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  /// Errors: store_unavailable (missing, not LMDB, truncated, may not be read or locked: says
  /// which and where), unsupported_version, corrupt_record, schema_mismatch (shards differ: names
  /// the first field), invalid_argument (no shard, or one twice), busy (this process reads it
  /// without a lock, and one is asked for).
  Result<std::shared_ptr<Dataset>> open(const std::vector<std::filesystem::path>& shards,
                                        VerifyRecords verify = VerifyRecords::once,
                                        Locking locking = Locking::on,
                                        Holding holding = Holding::lengths);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The properties of a dataset that can be found without reading its records.
struct Examination {
  std::uint64_t sequences = 0;
  MapLock lock = MapLock::none;
  /// A defect of a dataset that can still be read, with its remedy; otherwise empty.
  std::string warning;
};

/// Opens a dataset and looks: does it exist, can it be read and locked, do its shards have one
/// schema, and does it hold anything. Errors: those of Catalog::open() and Dataset::snapshot().
Result<Examination> examine_dataset(const std::vector<std::filesystem::path>& shards,
                                    Locking locking = Locking::on);

/// The consequences of a dataset without a lock, and the remedy, in one line that names it; empty
/// when it is locked, or nothing can write to it.
std::string lock_warning(const Dataset& dataset);

}  // namespace batchwright
