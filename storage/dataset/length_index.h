#pragma once

#include <vector>

#include "storage/dataset/lmdb/environment.h"

// The table `lengths`: for each column, the values of all sequences packed into chunks, so that
// opening a dataset reads a few bytes a sequence. Layout in README.md.

namespace batchwright {

/// Sequences in a chunk. With LMDB's and our header a full chunk takes four pages of 4 KiB in a
/// wide column, two in a narrow one.
inline constexpr std::uint64_t kChunkSequences = 4084;

/// A column: its number, and bytes of one value (2 or 4).
struct Column {
  std::uint64_t number = 0;
  std::size_t width = 4;
};

inline constexpr Column kLengthColumn{0, 4};
inline constexpr Column kKeyBytesColumn{1, 2};

/// The column of the schema's n-th independent field.
inline constexpr Column independent_column(std::size_t n) { return {2 + n, 4}; }

/// Positions of the independent fields in the schema.
std::vector<std::size_t> independent_fields(const Schema& schema);

/// All columns of a schema, by their number.
std::vector<Column> columns_of(const Schema& schema);

/// Copies the first values of a column, which has `sequences`, to `out`, as many as it takes.
/// Errors: corrupt_record (names column and chunk, or that it has not as many), store_unavailable.
Result<void> read_column(const Transaction& transaction, Column column, std::uint64_t sequences,
                         std::span<std::byte> out);

/// Copies one chunk to `out`, which is as long as its values are. Errors: as read_column().
Result<void> read_chunk(const Transaction& transaction, Column column, std::uint64_t chunk,
                        std::span<std::byte> out);

/// Writes the chunks that hold `values`; the first is of sequence `first`, which begins a chunk.
/// Errors: as Transaction::put().
Result<void> write_chunks(Transaction& transaction, Column column, std::uint64_t first,
                          std::span<const std::uint32_t> values);

}  // namespace batchwright
