#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "storage/dataset/length_index.h"
#include "storage/dataset/state.h"

namespace batchwright {

/// Finished records that wait for their commit, and what the commit writes about them.
/// Threads: one at a time.
class Pending {
 public:
  /// `buffer_bytes` of memory are kept for records; more is taken when one is larger.
  Pending(const Schema& schema, std::uint64_t buffer_bytes);

  /// Reads the last chunks of the length index, which go on growing. Where an earlier version has
  /// appended, the records say what their checksums are.
  /// Errors: corrupt_record, store_unavailable.
  Result<void> load_tail(const Transaction& transaction, std::uint64_t sequences);

  /// Takes a checked sequence with a new key.
  void add(const Sequence& sequence, Ordinal ordinal);
  void drop_last();

  /// Writes all, of which the first becomes sequence `first`. Errors: as Transaction::put().
  Result<void> write(Transaction& transaction, std::uint64_t first) const;
  /// All was committed.
  void clear();

  std::size_t size() const { return records_.size(); }
  std::uint64_t bytes() const { return used_; }
  bool contains(std::string_view key) const { return keys_.count(std::string(key)) != 0; }
  RecordSummary summary(std::size_t i) const;

 private:
  struct Record {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    const std::string* key = nullptr;  // in keys_
    std::uint32_t length = 0;
  };

  std::span<std::byte> take(std::size_t bytes);
  Result<void> load_checksums(const Transaction& transaction, std::uint64_t sequences);
  std::span<const std::byte> bytes_of(const Record& record) const {
    return {buffer_.get() + record.offset, record.bytes};
  }
  Result<void> write_keys(Transaction& transaction, std::uint64_t first) const;

  std::size_t primary_;
  std::vector<std::size_t> independent_;
  std::vector<Column> columns_;                    // the last is of checksums
  std::vector<std::vector<std::uint32_t>> tails_;  // per column, from the begin of a chunk
  std::uint64_t tail_first_ = 0;                   // first sequence of the tails
  bool lacks_checksums_ = false;  // of the tails' first chunk some cannot be had: it stays as it is
  std::vector<Record> records_;
  std::unordered_set<std::string> keys_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
};

}  // namespace batchwright
