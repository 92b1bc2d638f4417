#pragma once

#include <array>

#include "storage/dataset/lmdb/environment.h"

namespace batchwright {

/// Figures of a dataset, renewed by every commit.
struct DatasetState {
  std::uint64_t sequences = 0;
  std::uint64_t frames = 0;
  std::uint64_t generation = 0;
  std::uint64_t content = 0;
  std::uint32_t min_length = 0;  ///< 0 where there is no sequence.
  std::uint32_t max_length = 0;
  friend bool operator==(const DatasetState&, const DatasetState&) = default;
};

/// Bytes of a state as it is stored.
inline constexpr std::size_t kStateBytes = 48;

/// A state as a transaction sees it, and where: those bytes stay as they are while the transaction
/// lives, unless somebody writes over the file.
struct PinnedState {
  DatasetState state;
  std::array<std::byte, kStateBytes> bytes{};
  MapBytes in_map;
};

/// One sequence, as far as the state depends on it.
struct RecordSummary {
  std::uint32_t crc = 0;
  std::uint64_t bytes = 0;   ///< Bytes of the whole record.
  std::uint32_t length = 0;  ///< T
};

/// The state of a dataset without sequences. Its content covers the fields, not the settings.
DatasetState empty_state(const Schema& schema);

/// Takes the next sequence into account; the generation is the commit's business.
void extend(DatasetState& state, const RecordSummary& record);

/// Content fingerprint of several shards, of which `content` covers those before.
std::uint64_t join_content(std::uint64_t content, std::uint64_t shard);

/// The contents of the table `meta`.
struct Meta {
  Schema schema;
  DatasetState state;
};

/// Errors: store_unavailable (no dataset), corrupt_record, unsupported_version; they name `path`.
Result<Meta> read_meta(const Transaction& transaction);
Result<DatasetState> read_state(const Transaction& transaction);
Result<PinnedState> pin_state(const Transaction& transaction);

/// Whether a state lies in the map as it was read. Its transaction is alive. Errors:
/// store_unavailable (the file was cut, or the disk failed).
Result<bool> is_as_read(const Transaction& transaction, const PinnedState& state);

/// Errors: as Transaction::put().
Result<void> write_schema(Transaction& transaction, const Schema& schema);
Result<void> write_state(Transaction& transaction, const DatasetState& state);

/// Says in what the fields differ, naming the first that does; empty when they are the same, or
/// when the categories of one are the first ones of the other.
std::string describe_field_difference(const Schema& expected, const Schema& found);

/// Appends to the categories of `schema` what `other`, which does not differ, has behind them.
/// True when there was any.
bool append_categories(Schema& schema, const Schema& other);

}  // namespace batchwright
