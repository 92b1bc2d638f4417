#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "formats/formats.h"
#include "storage/dataset/lmdb/creation.h"

struct MDB_txn;

namespace batchwright {

/// Values by numbers, in a few tables of an LMDB environment of one's own: the folder has data.mdb,
/// and `lock`, which keeps other processes out.
///
/// What a write() has returned for survives the death of the process. With `synced` it also
/// survives a loss of power; without, that may damage the whole, as the kernel writes pages in any
/// order. A failed write() has changed nothing.
/// Threads: one at a time; it may go from thread to thread.
class KeyedStore {
 public:
  /// Makes the folder, and in it what is not there. `name` names it in errors.
  /// Errors: busy (another process has it), io_error (a disk that is full or broken),
  /// store_unavailable (it cannot be opened, is none of LMDB's, or has other tables, a dataset's
  /// for one), unsupported_version (its keys are another version's), corrupt_record, does_not_fit.
  static Result<std::unique_ptr<KeyedStore>> open(std::string name,
                                                  const std::filesystem::path& folder,
                                                  std::span<const char* const> tables, bool synced);
  ~KeyedStore();
  KeyedStore(const KeyedStore&) = delete;
  KeyedStore& operator=(const KeyedStore&) = delete;

  /// What one write() does. After an error, which write() returns, nothing more is done.
  class Batch {
   public:
    /// Takes the place of what was there. The bytes are to be filled in at once.
    std::span<std::byte> reserve(std::size_t table, std::uint64_t key, std::size_t bytes);
    /// There need not be such a key.
    void erase(std::size_t table, std::uint64_t key);

   private:
    friend class KeyedStore;
    Batch(MDB_txn* txn, const std::vector<unsigned>& tables) : txn_(txn), tables_(tables) {}

    MDB_txn* txn_;
    const std::vector<unsigned>& tables_;
    int code_ = 0;
    std::vector<std::byte> nowhere_;  ///< For what is filled in after an error.
  };
  /// All that `fill` does, or nothing. Errors: io_error (full, broken), does_not_fit,
  /// corrupt_record: after that one it cannot be written any more.
  Result<void> write(const std::function<void(Batch&)>& fill);

  /// Empties all tables. Errors: as write().
  Result<void> clear();

  /// The values of a table by their keys, up to the first error of `take`. Errors: corrupt_record,
  /// store_unavailable, those of `take`.
  using Take = std::function<Result<void>(std::uint64_t key, std::span<const std::byte> value)>;
  Result<void> read(std::size_t table, const Take& take) const;

  const std::string& name() const { return name_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  KeyedStore(std::string name, std::filesystem::path folder, FileLock lock)
      : name_(std::move(name)), folder_(std::move(folder)), lock_(std::move(lock)) {}
  Result<void> open_map(std::span<const char* const> tables, bool synced);
  Result<void> open_tables(std::span<const char* const> tables);
  Result<MDB_txn*> begin(bool reads) const;
  Error error(int code, const char* doing) const;

  std::string name_;
  std::filesystem::path folder_;
  FileLock lock_;
  EnvironmentHandle env_;
  std::vector<unsigned> tables_;
  bool lost_ = false;  ///< A write was left half done.
};

}  // namespace batchwright
