#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "formats/formats.h"
#include "storage/dataset/lmdb/map_lock.h"
#include "storage/dataset/lmdb/map_pages.h"

struct MDB_env;
struct MDB_txn;
struct MDB_stat;

// LMDB, wrapped once: no other file knows it.

namespace batchwright {

/// The named databases of a dataset. FORMAT.md says what they hold.
enum class Table : std::size_t { meta, sequences, keys, lengths };
inline constexpr std::size_t kTables = 4;

enum class Access : std::uint8_t { read, write };

/// A key as LMDB takes it: a number is one of the machine's words, so below 2^32 where those have
/// 32 bits. It points to its argument.
inline std::span<const std::byte> as_key(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::span<const std::byte> as_key(const std::uint64_t& number) {
  return std::as_bytes(std::span(&number, 1)).first(sizeof(std::size_t));
}

/// One LMDB environment: a directory with data.mdb and lock.mdb.
///
/// LMDB forbids a process to open one twice, so everything that opens the same directory shares one
/// of these. It opens the files read-only until a writer comes, and reserves far more address space
/// than the file needs, because the map can only be moved while no transaction is alive.
/// Threads: any. Not usable in a forked child, which opens its own.
class Environment {
 public:
  /// Opens for reading. Errors: store_unavailable (names the file that may not be opened, and what
  /// helps), unsupported_version, corrupt_record, busy, does_not_fit.
  static Result<std::shared_ptr<Environment>> open(const std::filesystem::path& path,
                                                   Locking locking = Locking::on);
  /// Opens for writing; creates the directory and the files when they are not there; tables are
  /// not created. At most one in this process writes. `map_bytes` 0: as much as is sensible.
  /// Errors: as open(), io_error.
  static Result<std::shared_ptr<Environment>> open_to_write(const std::filesystem::path& path,
                                                            std::uint64_t map_bytes = 0);

  const std::filesystem::path& path() const { return path_; }

  /// The protection of the snapshots. Threads: any.
  MapLock lock() const { return lock_.load(std::memory_order_relaxed); }

  /// Whether the tables of a dataset are there; looks again when they were not.
  /// Errors: store_unavailable when the environment holds something else.
  Result<bool> has_tables();

  /// Doubles the map. Errors: busy while this process has a transaction alive; does_not_fit.
  Result<void> grow();

  /// The error for the fault that ended this thread's last guarded read: store_unavailable where
  /// the file is too small (names both sizes) or the disk failed, otherwise corrupt_record.
  Error fault() const;

  /// The open data.mdb, as long as a transaction is alive.
  int descriptor() const;
  /// The disk that data.mdb lies on (st_dev), and its size; 0 when the system does not tell.
  std::uint64_t device() const;
  std::uint64_t file_bytes() const;
  /// Of LMDB's pages, which are those of the machine that made the dataset.
  std::uint64_t page_bytes() const;

  /// The data.mdb of a directory, compared with the one that is open.
  enum class FileAt : std::uint8_t { same, none, another };
  FileAt file_at(const std::filesystem::path& directory) const;
  /// Errors: store_unavailable when the directory no longer leads to the files that are open, or
  /// they were overwritten and something still reads them.
  Result<void> check_still_there(const std::filesystem::path& directory);

  /// The files were overwritten in place: what is read of them may be anything, and nothing new is
  /// read before all that reads has ended. The error that says so: fingerprint_mismatch.
  Error overwritten();
  bool was_overwritten() const { return overwritten_.load(std::memory_order_relaxed); }

 private:
  friend class Transaction;
  friend class EnvironmentRegistry;

  Environment(std::filesystem::path path, Locking locking)
      : path_(std::move(path)), locking_(locking) {}
  Result<void> reopen(Access access, std::uint64_t map_bytes) REQUIRES(mutex_);
  Result<EnvironmentHandle> open_handle(Access access, std::uint64_t map_bytes) const;
  Result<void> open_map(Access access, std::uint64_t map_bytes) REQUIRES(mutex_);
  Result<void> open_tables() REQUIRES(mutex_);
  Result<void> check_size() const;
  Error error(int code, std::string_view doing) const;
  Error lost() const;
  bool is_lost() const;
  Error damaged(std::string_view doing, std::string_view what) const;
  Error may_not_open(Access access) const;

  const std::filesystem::path path_;
  std::atomic<MapLock> lock_ = MapLock::none;
  std::atomic<bool> overwritten_ = false;
  mutable Mutex mutex_;
  // Changed with the mutex while no transaction is alive, and read without it while one is.
  EnvironmentHandle env_;  // null after a failed reopen()
  std::uint64_t page_bytes_ = 0;
  std::array<unsigned, kTables> tables_{};
  Locking locking_;
  Access access_ GUARDED_BY(mutex_) = Access::read;
  std::uint64_t map_bytes_ GUARDED_BY(mutex_) = 0;
  std::size_t alive_ GUARDED_BY(mutex_) = 0;  // transactions
  bool tables_open_ GUARDED_BY(mutex_) = false;
  /// A write was left half done, and holds LMDB's writer lock until we end.
  bool lost_ GUARDED_BY(mutex_) = false;
};

/// The way in which put() treats an existing key.
enum class Put : std::uint8_t {
  append,   ///< The key is behind all others.
  insert,   ///< The key is new.
  replace,  ///< Either.
};

/// A transaction. Not ended by commit(), it ends without effect.
///
/// Lifetime: what get() returns is valid until the transaction ends or puts.
/// Threads: one at a time; one that writes stays on its thread.
class Transaction {
 public:
  /// Errors: store_unavailable (truncated, gone), does_not_fit (reader slots), io_error.
  static Result<Transaction> begin(std::shared_ptr<Environment> environment, Access access);

  /// Nothing when the key is not there. Errors: store_unavailable; corrupt_record when the tree is
  /// damaged on the way to this key. Others can be looked up after both.
  Result<std::optional<MapBytes>> get(Table table, std::span<const std::byte> key) const;
  /// Entries of a table. Errors: as get().
  Result<std::uint64_t> entries(Table table) const;
  /// Pages of a table's tree that hold keys: those that a look-up ends at. Errors: as get().
  Result<std::uint64_t> leaf_pages(Table table) const;
  /// A transaction of its own that reads the same environment, as it is now. Errors: as begin().
  Result<Transaction> another() const;

  /// Makes the tables, which are not there. Errors: as put().
  Result<void> create_tables();
  /// Whether the pages of this snapshot are as they were when it began: always with a lock.
  /// Errors: store_unavailable when writers may have written to them since.
  Result<void> check_unchanged() const;

  /// Errors: does_not_fit (the map is full), already_exists, io_error, corrupt_record (the tree is
  /// damaged where the key belongs: then this process can write the dataset no longer).
  Result<void> put(Table table, std::span<const std::byte> key, std::span<const std::byte> value,
                   Put how);
  /// Ends the transaction in any case. Errors: as put().
  Result<void> commit();

  Environment& environment() const { return *handle_.get_deleter().environment; }

 private:
  struct End {
    std::shared_ptr<Environment> environment;
    Access access;
    void operator()(MDB_txn* txn) const noexcept;
    void ended() const noexcept;
  };
  using Handle = std::unique_ptr<MDB_txn, End>;
  explicit Transaction(Handle handle) : handle_(std::move(handle)) {}
  Result<MDB_stat> figures(Table table) const;
  static Result<Handle> begin_handle(std::shared_ptr<Environment> environment, Access access);
  MDB_txn* reader() const { return substitute_ ? substitute_.get() : handle_.get(); }
  Result<void> written(int code, std::string_view doing);
  void lose();

  Handle handle_;
  /// LMDB refuses all further use of a transaction that met a damaged page. Later look-ups use
  /// this one then: what is appended does not change what was there, and handle_ goes on keeping
  /// the pages.
  mutable Handle substitute_;
};

}  // namespace batchwright
