#pragma once

#include <vector>

#include "storage/dataset/lmdb/environment.h"

// The table `lengths`: for each column, the values of all sequences packed into chunks, so that
// opening a dataset reads a few bytes a sequence. Layout in FORMAT.md.

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

/// The column of each record's CRC-32C. Its number is the largest: a program that knows nothing of
/// it looks for the columns above alone. Such a writer leaves it as it is, so that chunks may be
/// missing or have fewer values than those of other columns.
inline constexpr Column kChecksumColumn{4095, 4};
static_assert(independent_column(kMaxFields).number < kChecksumColumn.number);

/// Positions of the independent fields in the schema.
std::vector<std::size_t> independent_fields(const Schema& schema);

/// All columns of a schema that have a value for each sequence, by their number.
std::vector<Column> columns_of(const Schema& schema);

/// Copies the first values of a column, which has `sequences`, to `out`, as many as it takes.
/// Errors: corrupt_record (names column and chunk, or that it has not as many), store_unavailable.
Result<void> read_column(const Transaction& transaction, Column column, std::uint64_t sequences,
                         std::span<std::byte> out);

/// Copies one chunk to `out`, which is as long as its values are. Errors: as read_column().
Result<void> read_chunk(const Transaction& transaction, Column column, std::uint64_t chunk,
                        std::span<std::byte> out);

/// Asks the kernel for the first chunks of a column, all at once: the map is read without its own
/// readahead. Errors: corrupt_record, store_unavailable.
Result<void> ask_for_column(const Transaction& transaction, Column column, std::uint64_t chunks);

/// Copies what there is of one chunk of a column that may be short, where others have `sequences`:
/// the number of values. Errors: as read_column().
Result<std::size_t> read_begun_chunk(const Transaction& transaction, Column column,
                                     std::uint64_t chunk, std::uint64_t sequences,
                                     std::span<std::byte> out);

/// Writes the chunks that hold `values`; the first is of sequence `first`, which begins a chunk.
/// Errors: as Transaction::put().
Result<void> write_chunks(Transaction& transaction, Column column, std::uint64_t first,
                          std::span<const std::uint32_t> values);

}  // namespace batchwright
