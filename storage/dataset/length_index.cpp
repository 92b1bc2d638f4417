#include "storage/dataset/length_index.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "storage/dataset/chunk_header.h"
#include "storage/dataset/reader.h"

namespace batchwright {
namespace {

/// The columns lie one behind the other in the table, with room for 2^40 chunks each, or as many as
/// a map of 32 bits could ever hold.
std::uint64_t chunk_key(Column column, std::uint64_t chunk) {
  constexpr unsigned kChunkBits = sizeof(std::size_t) == 8 ? 40 : 20;
  return column.number << kChunkBits | chunk;
}

/// The chunk in the map; empty when it is missing, which read_chunk() calls damaged.
Result<MapBytes> find_chunk(const Transaction& transaction, Column column, std::uint64_t chunk) {
  const std::uint64_t key = chunk_key(column, chunk);
  const auto found = transaction.get(Table::lengths, as_key(key));
  if (!found) return found.error();
  return found->value_or(MapBytes());
}

Error damaged(const Transaction& transaction, Column column, std::uint64_t chunk) {
  return {ErrorCode::corrupt_record,
          fmt::format("dataset {}: length index: chunk {} of column {} is damaged",
                      transaction.environment().path().string(), chunk, column.number)};
}

/// How many values a full column has in a chunk: all chunks are full but the last.
std::size_t stored_in(std::uint64_t chunk, std::uint64_t sequences) {
  return std::min(kChunkSequences, sequences - chunk * kChunkSequences);
}

std::vector<std::byte> encode_chunk(std::size_t width, std::span<const std::uint32_t> values) {
  std::vector<std::byte> bytes(kHeaderBytes + values.size() * width);
  const auto count = static_cast<std::uint32_t>(values.size());
  std::memcpy(bytes.data() + kCrcEnd, &count, sizeof count);
  std::byte* out = bytes.data() + kHeaderBytes;
  for (const std::uint32_t value : values) {
    std::memcpy(out, &value, width);  // little-endian: a narrow value is the low bytes
    out += width;
  }
  const std::uint32_t crc = crc32c(std::span<const std::byte>(bytes).subspan(kCrcEnd));
  std::memcpy(bytes.data(), &crc, sizeof crc);
  return bytes;
}

}  // namespace

std::vector<std::size_t> independent_fields(const Schema& schema) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    if (schema.fields[i].kind == FieldKind::independent) positions.push_back(i);
  }
  return positions;
}

std::vector<Column> columns_of(const Schema& schema) {
  std::vector<Column> columns = {kLengthColumn, kKeyBytesColumn};
  for (std::size_t n = 0; n < independent_fields(schema).size(); ++n) {
    columns.push_back(independent_column(n));
  }
  return columns;
}

Result<void> read_chunk(const Transaction& transaction, Column column, std::uint64_t chunk,
                        std::span<std::byte> out) {
  const auto found = find_chunk(transaction, column, chunk);
  if (!found) return found.error();
  std::array<std::byte, kHeaderBytes> header{};
  bool whole = found->size() == kHeaderBytes + out.size();
  if (whole) {
    if (!copy_from_map(header, found->first(kHeaderBytes)) ||
        !copy_from_map(out, found->subspan(kHeaderBytes))) {
      return transaction.environment().fault();
    }
    std::uint32_t crc = 0;
    std::uint32_t count = 0;
    std::memcpy(&crc, header.data(), sizeof crc);
    std::memcpy(&count, header.data() + kCrcEnd, sizeof count);
    // In two parts, for the values were copied to where the caller wants them.
    whole = count * column.width == out.size() &&
            crc == crc32c(out, crc32c(std::span<const std::byte>(header).subspan(kCrcEnd)));
  }
  if (whole) return {};
  return damaged(transaction, column, chunk);
}

Result<std::size_t> read_begun_chunk(const Transaction& transaction, Column column,
                                     std::uint64_t chunk, std::uint64_t sequences,
                                     std::span<std::byte> out) {
  const auto found = find_chunk(transaction, column, chunk);
  if (!found) return found.error();
  if (found->empty()) return std::size_t{0};
  std::array<std::byte, kHeaderBytes + kChunkSequences * sizeof(std::uint32_t)> bytes{};
  const std::size_t most = kHeaderBytes + stored_in(chunk, sequences) * column.width;
  if (found->size() < kHeaderBytes || found->size() > most) {
    return damaged(transaction, column, chunk);
  }
  const auto copy = std::span(bytes).first(found->size());
  if (!copy_from_map(copy, *found)) return transaction.environment().fault();
  std::uint32_t crc = 0;
  std::uint32_t count = 0;
  std::memcpy(&crc, copy.data(), sizeof crc);
  std::memcpy(&count, copy.data() + kCrcEnd, sizeof count);
  const auto values = copy.subspan(kHeaderBytes);
  if (values.size() != count * column.width || crc != crc32c(copy.subspan(kCrcEnd))) {
    return damaged(transaction, column, chunk);
  }
  const auto wanted = values.first(std::min(values.size(), out.size()));
  std::copy(wanted.begin(), wanted.end(), out.begin());
  return wanted.size() / column.width;
}

Result<void> ask_for_column(const Transaction& transaction, Column column, std::uint64_t chunks) {
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    const auto found = find_chunk(transaction, column, chunk);
    if (!found) return found.error();
    if (!found->empty()) prefetch(*found);
  }
  return {};
}

Result<void> read_column(const Transaction& transaction, Column column, std::uint64_t sequences,
                         std::span<std::byte> out) {
  const std::size_t chunk_bytes = kChunkSequences * column.width;
  if (out.size() / column.width > sequences) {
    return Error{ErrorCode::corrupt_record,
                 fmt::format("dataset {}: length index: {} values of column {} are asked for, it "
                             "has {}",
                             transaction.environment().path().string(), out.size() / column.width,
                             column.number, sequences)};
  }
  const std::uint64_t chunks = (out.size() + chunk_bytes - 1) / chunk_bytes;
  if (auto asked = ask_for_column(transaction, column, chunks); !asked) return asked;
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    const auto rest = out.subspan(chunk * chunk_bytes);
    const auto wanted = rest.first(std::min(rest.size(), chunk_bytes));
    // What the chunk holds by the transaction's state.
    const std::size_t stored = stored_in(chunk, sequences) * column.width;
    if (wanted.size() == stored) {
      if (auto read = read_chunk(transaction, column, chunk, wanted); !read) return read;
    } else {
      // The last chunk of an earlier commit has grown since; its CRC covers all of it.
      std::vector<std::byte> whole(stored);
      if (auto read = read_chunk(transaction, column, chunk, whole); !read) return read;
      std::copy_n(whole.begin(), wanted.size(), wanted.begin());
    }
  }
  return {};
}

Result<void> write_chunks(Transaction& transaction, Column column, std::uint64_t first,
                          std::span<const std::uint32_t> values) {
  for (std::size_t i = 0; i < values.size(); i += kChunkSequences) {
    const auto part = values.subspan(i, std::min<std::size_t>(kChunkSequences, values.size() - i));
    const std::uint64_t key = chunk_key(column, (first + i) / kChunkSequences);
    auto put = transaction.put(Table::lengths, as_key(key), encode_chunk(column.width, part),
                               Put::replace);
    if (!put) return put;
  }
  return {};
}

}  // namespace batchwright
