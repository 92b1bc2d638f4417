#include "storage/dataset/pending.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "storage/dataset/reader.h"

namespace batchwright {
namespace {

/// Memory for records, in huge pages where there are any: of 50 MB, touching small ones for the
/// first time took 40 ms, and all the rest of writing them 95.
std::unique_ptr<std::byte[]> buffer_of(std::size_t bytes) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  auto buffer = std::make_unique_for_overwrite<std::byte[]>(bytes);
  const std::uintptr_t behind = reinterpret_cast<std::uintptr_t>(buffer.get()) % page;
  const std::size_t first = (page - behind) % page;  // whole pages begin here
  // A hint: without it everything works as well, only slower.
  if (first < bytes) {
    static_cast<void>(madvise(buffer.get() + first, bytes - first, MADV_HUGEPAGE));
  }
  return buffer;
}

std::vector<Column> columns_to_write(const Schema& schema) {
  std::vector<Column> columns = columns_of(schema);
  columns.push_back(kChecksumColumn);
  return columns;
}

/// The checksum that a stored record carries; empty where it cannot be read.
std::optional<std::uint32_t> stored_checksum(const Transaction& transaction,
                                             std::uint64_t ordinal) {
  const auto found = transaction.get(Table::sequences, as_key(ordinal));
  std::array<std::byte, sizeof(wire::RecordHeader)> header{};
  if (!found || !*found || (*found)->size() < header.size()) return {};
  if (!copy_from_map(header, (*found)->first(header.size()))) return {};
  return record_crc(header);
}

}  // namespace

Pending::Pending(const Schema& schema, std::uint64_t buffer_bytes)
    : primary_(schema.primary()),
      independent_(independent_fields(schema)),
      columns_(columns_to_write(schema)),
      tails_(columns_.size()),
      buffer_(buffer_of(buffer_bytes)),
      capacity_(buffer_bytes) {}

Result<void> Pending::load_tail(const Transaction& transaction, std::uint64_t sequences) {
  const std::uint64_t chunk = sequences / kChunkSequences;
  const std::uint64_t count = sequences % kChunkSequences;
  // A commit rewrites the last chunk, so what it holds already has to be at hand.
  tail_first_ = chunk * kChunkSequences;
  for (std::size_t i = 0; i + 1 < columns_.size() && count != 0; ++i) {
    const Column column = columns_[i];
    std::vector<std::byte> packed(count * column.width);
    if (auto read = read_chunk(transaction, column, chunk, packed); !read) return read;
    for (std::uint64_t s = 0; s < count; ++s) {
      std::uint32_t value = 0;
      std::memcpy(&value, packed.data() + s * column.width, column.width);
      tails_[i].push_back(value);
    }
  }
  return load_checksums(transaction, sequences);
}

Result<void> Pending::load_checksums(const Transaction& transaction, std::uint64_t sequences) {
  std::vector<std::uint32_t>& tail = tails_.back();
  tail.resize(sequences - tail_first_);
  if (tail.empty()) return {};
  const auto known = read_begun_chunk(transaction, kChecksumColumn, tail_first_ / kChunkSequences,
                                      sequences, std::as_writable_bytes(std::span(tail)));
  if (!known) return known.error();
  for (std::size_t i = *known; i < tail.size() && !lacks_checksums_; ++i) {
    const auto checksum = stored_checksum(transaction, tail_first_ + i);
    lacks_checksums_ = !checksum;
    tail[i] = checksum.value_or(0);
  }
  return {};
}

/// Room for a record behind the others. Records are referred to by offset, so the buffer may move.
std::span<std::byte> Pending::take(std::size_t bytes) {
  if (used_ + bytes > capacity_) {
    // By half at a time, so that the records are copied a few times only.
    capacity_ = std::max(used_ + bytes, capacity_ + capacity_ / 2);
    auto larger = buffer_of(capacity_);
    if (used_ != 0) std::memcpy(larger.get(), buffer_.get(), used_);
    buffer_ = std::move(larger);
  }
  const std::span<std::byte> room(buffer_.get() + used_, bytes);
  used_ += bytes;
  return room;
}

void Pending::add(const Sequence& sequence, Ordinal ordinal) {
  const std::uint32_t length = sequence.fields[primary_].length;
  const std::size_t offset = used_;
  const std::span<std::byte> record = take(record_bytes(sequence));
  write_record(sequence, ordinal, length, record);
  set_record_crc(record, crc32c(record_crc_range(record)));
  const auto [key, added] = keys_.emplace(sequence.key);
  records_.push_back({offset, record.size(), &*key, length});
  // In the order of columns_of(): T, bytes of the key, then each independent field's U.
  tails_[0].push_back(length);
  tails_[1].push_back(static_cast<std::uint32_t>(sequence.key.size()));
  for (std::size_t n = 0; n < independent_.size(); ++n) {
    tails_[2 + n].push_back(sequence.fields[independent_[n]].length);
  }
  tails_.back().push_back(record_crc(record));
}

void Pending::drop_last() {
  used_ = records_.back().offset;
  keys_.erase(*records_.back().key);
  records_.pop_back();
  for (auto& tail : tails_) tail.pop_back();
}

RecordSummary Pending::summary(std::size_t i) const {
  const Record& record = records_[i];
  return {record_crc(bytes_of(record)), record.bytes, record.length};
}

Result<void> Pending::write(Transaction& transaction, std::uint64_t first) const {
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const std::uint64_t ordinal = first + i;
    // Ordinals only grow: MDB_APPEND goes without a search and leaves no page half full.
    auto put =
        transaction.put(Table::sequences, as_key(ordinal), bytes_of(records_[i]), Put::append);
    if (!put) return put;
  }
  for (std::size_t i = 0; i + 1 < columns_.size(); ++i) {
    if (auto put = write_chunks(transaction, columns_[i], tail_first_, tails_[i]); !put) return put;
  }
  const std::span<const std::uint32_t> checksums(tails_.back());
  const std::size_t skipped =
      lacks_checksums_ ? std::min<std::size_t>(kChunkSequences, checksums.size()) : 0;
  auto put =
      write_chunks(transaction, columns_.back(), tail_first_ + skipped, checksums.subspan(skipped));
  if (!put) return put;
  return write_keys(transaction, first);
}

/// Writes in the order of the keys, so that each page of their tree is visited once.
Result<void> Pending::write_keys(Transaction& transaction, std::uint64_t first) const {
  std::vector<std::pair<std::string_view, std::uint64_t>> sorted;
  sorted.reserve(records_.size());
  for (std::size_t i = 0; i < records_.size(); ++i)
    sorted.emplace_back(*records_[i].key, first + i);
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [key, ordinal] : sorted) {
    const auto value = std::as_bytes(std::span(&ordinal, 1));
    if (auto put = transaction.put(Table::keys, as_key(key), value, Put::insert); !put) return put;
  }
  return {};
}

void Pending::clear() {
  records_.clear();
  keys_.clear();
  used_ = 0;
  // The rest begins a chunk that is not full yet, and that the next commit rewrites.
  const std::size_t complete = tails_[0].size() / kChunkSequences * kChunkSequences;
  for (auto& tail : tails_) tail.erase(tail.begin(), tail.begin() + static_cast<long>(complete));
  tail_first_ += complete;
  if (complete != 0) lacks_checksums_ = false;
}

}  // namespace batchwright
