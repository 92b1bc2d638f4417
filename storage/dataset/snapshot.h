#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "formats/formats.h"
#include "storage/dataset/checksums.h"
#include "storage/dataset/history.h"
#include "storage/dataset/length_index.h"
#include "storage/dataset/reader.h"
#include "storage/dataset/state.h"
#include "storage/dataset/verified_records.h"

namespace batchwright {

/// One shard as a snapshot pins it.
struct PinnedShard {
  Transaction transaction;
  std::filesystem::path path;  ///< By which the dataset was opened: it may lead elsewhere by now.
  PinnedState state;           ///< Of the newest commit.
  Commit commit;  ///< The commit whose sequences the snapshot shows: that one, or an earlier one.
  std::optional<VerifiedRecords> verified;  ///< None: verify always, or never.
  RecordChecksums checksums{};              ///< None where they are not held.
  std::uint64_t device = 0;                 ///< The disk that it lies on.
  std::uint64_t page_bytes = 0;             ///< Of LMDB's pages.
  MapOrigin file{};                         ///< Known once a record was let go.
};

/// A snapshot over the shards' read transactions. All but those is immutable.
class PinnedSnapshot final : public Snapshot {
 public:
  /// Reads the length index. Errors: corrupt_record, store_unavailable.
  static Result<std::shared_ptr<const PinnedSnapshot>> pin(Schema schema,
                                                           std::vector<PinnedShard> shards,
                                                           VerifyRecords verify, Holding holding);

  const Schema& schema() const override { return schema_; }
  std::uint64_t sequences() const override { return firsts_.back(); }
  std::span<const std::uint64_t> shard_sequences() const override { return counts_; }
  std::uint64_t generation() const override;
  std::uint64_t content() const override;
  std::span<const std::uint32_t> lengths() const override { return lengths_; }
  std::span<const std::uint32_t> field_lengths(std::size_t field) const override;
  std::span<const std::uint16_t> key_bytes() const override { return key_bytes_; }
  Result<RecordView> record(Ordinal ordinal) const override;
  Result<RecordView> record(Ordinal ordinal, const RecordPlace& place) const override;
  Result<void> check_unchanged() const override;
  DatasetStanding standing() const override;
  std::optional<RecordPlace> place(Ordinal ordinal) const override;
  Result<std::optional<Ordinal>> find(std::string_view key) const override;
  void let_go(Ordinal ordinal) const override;
  std::uint64_t file_bytes() const override;
  void bring_in_tree(std::uint64_t most_bytes, const std::stop_token& stop) const override;

  /// The commit of a shard that is shown.
  const Commit& commit(std::size_t shard) const { return shards_[shard].commit; }

 private:
  /// The place of a sequence: shard, and place within it.
  struct Place {
    std::size_t shard = 0;
    std::uint64_t local = 0;
  };

  PinnedSnapshot(Schema schema, std::vector<PinnedShard> shards, VerifyRecords verify);
  Result<void> read_index();
  Result<void> read_checksums();
  Place place_of(Ordinal ordinal) const;
  Result<RecordView> checked_record(Ordinal ordinal, const Place& place, MapBytes bytes) const;
  Result<RecordView> unchanged(const Place& place, Result<RecordView> record) const;
  Result<MapBytes> bytes_of(const Place& place) const;
  Result<std::optional<Ordinal>> find_in(std::size_t shard, std::string_view key) const;
  Result<void> check_key(Ordinal ordinal, std::string_view key) const;
  std::optional<MapOrigin> file_of(const Place& place, MapBytes bytes) const;
  Result<RecordView> parse(Ordinal ordinal, const Place& place, MapBytes bytes) const;
  Result<void> check_crc(const Place& place, MapBytes bytes, const RecordView& record) const;
  const char* index_disagreement(Ordinal ordinal, const Place& place,
                                 const RecordView& record) const;
  Error other_content(const Place& place, MapBytes bytes) const;
  static Result<void> check_state(const PinnedShard& shard);
  static DatasetStanding standing_of(const PinnedShard& shard);
  Error beyond(Ordinal ordinal) const;
  Error broken(const Place& place, const Error& error) const;

  Schema schema_;
  VerifyRecords verify_;
  std::vector<std::size_t> independent_;  // positions of independent fields
  mutable std::vector<PinnedShard> shards_;
  std::unique_ptr<Mutex[]> mutexes_;   // one a shard: a transaction serves one thread at a time
  std::vector<std::uint64_t> firsts_;  // first ordinal of each shard, then their sum
  std::vector<std::uint64_t> counts_;  // sequences of each shard
  std::vector<std::uint32_t> lengths_;
  std::vector<std::uint16_t> key_bytes_;
  std::vector<std::vector<std::uint32_t>> field_lengths_;  // by place in independent_
};

}  // namespace batchwright
