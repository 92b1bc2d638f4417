#include "formats/record.h"

#include <fmt/core.h>

#include <cstring>

#include "formats/categories.h"

namespace batchwright {
namespace {

constexpr std::uint32_t kMagic = 0x31525742;  // "BWR1", little-endian
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kHeaderBytes = sizeof(wire::RecordHeader);
constexpr std::size_t kEntryBytes = sizeof(wire::RecordField);
constexpr std::size_t kCrcEnd = 8;  // magic and crc come first
static_assert(kHeaderBytes == 48 && kEntryBytes == 24);

/// Where the next payload may start. LMDB puts a large value 16 bytes behind a page's start, so
/// an offset of 48 + 64 k is 64-byte aligned in the map.
std::size_t payload_offset(std::size_t end) {
  return (end - kHeaderBytes + 63) / 64 * 64 + kHeaderBytes;
}

/// Offsets of what lies behind the payloads, and the size of it all.
struct Places {
  std::size_t key = 0;
  std::size_t table = 0;
  std::size_t total = 0;
};

Places places_of(const Sequence& sequence) {
  std::size_t end = kHeaderBytes;
  for (const FieldValue& field : sequence.fields) end = payload_offset(end) + field.bytes.size();
  // The key ends where the table begins, so that a reader needs its length alone.
  const std::size_t table = (end + sequence.key.size() + 7) / 8 * 8;
  return {table - sequence.key.size(), table, table + sequence.fields.size() * kEntryBytes};
}

constexpr const char* kNoFrames = "no frames; a sequence has at least one";

/// What is wrong with a field's length in a sequence of so many frames; empty: nothing. An
/// independent field has any length, 0 included.
std::string wrong_length(const FieldSpec& spec, std::uint32_t found, std::uint32_t frames) {
  if (spec.kind == FieldKind::independent) return {};
  const std::uint32_t wanted = per_frame(spec) ? frames : 1;
  if (found == wanted) return {};
  return fmt::format("field \"{}\" has length {}, not {}", spec.name, found, wanted);
}

Error mismatch(const Sequence& sequence, const std::string& what) {
  return {ErrorCode::schema_mismatch, fmt::format("key \"{}\": {}", sequence.key, what)};
}

Error corrupt(const std::string& what) {
  return {ErrorCode::corrupt_record, fmt::format("record: {}", what)};
}

wire::RecordField read_entry(const std::byte* table, std::size_t i) {
  wire::RecordField entry;
  std::memcpy(&entry, table + i * kEntryBytes, kEntryBytes);
  return entry;
}

Result<void> check_entry(const FieldSpec& spec, const wire::RecordField& entry,
                         const wire::RecordHeader& header) {
  // Subtracted, not added: the sum of two corrupt numbers may wrap around.
  if (entry.offset() < kHeaderBytes || entry.offset() > header.table_offset() ||
      entry.bytes() > header.table_offset() - entry.offset()) {
    return corrupt(fmt::format("field \"{}\" lies outside the record", spec.name));
  }
  const bool right_length = wrong_length(spec, entry.length(), header.length()).empty();
  // 32 bits times at most 16 MiB: the product cannot wrap around.
  if (!right_length || entry.bytes() != std::uint64_t{entry.length()} * frame_bytes(spec)) {
    return corrupt(fmt::format("field \"{}\" has the wrong size", spec.name));
  }
  return {};
}

Result<void> check_header(const Schema& schema, const wire::RecordHeader& header,
                          std::size_t size) {
  // Magic and version first: what follows means nothing in another version.
  if (header.magic() != kMagic) return corrupt("does not start with BWR1");
  if (header.version() != kVersion) {
    return Error{ErrorCode::unsupported_version,
                 fmt::format("record version {}, this program reads 1", header.version())};
  }
  if (header.fields() != schema.fields.size()) return corrupt("wrong number of fields");
  if (header.length() == 0) return corrupt("no frames");
  if (header.total_bytes() != size) return corrupt("wrong total size");
  // The table is the last part, so its place follows from the size, and reading it is safe.
  const std::uint64_t table_bytes = header.fields() * kEntryBytes;
  if (header.table_offset() > size || size - header.table_offset() != table_bytes) {
    return corrupt("the field table lies outside the record");
  }
  if (header.key_bytes() == 0 || header.key_bytes() > kMaxKeyBytes ||
      header.key_bytes() + kHeaderBytes > header.table_offset()) {
    return corrupt("the key lies outside the record");
  }
  return {};
}

}  // namespace

Result<std::vector<ValuePlace>> offered_places(const Schema& schema,
                                               std::span<const std::uint32_t> lengths) {
  const std::uint32_t frames = lengths[schema.primary()];
  if (frames == 0) return Error{ErrorCode::schema_mismatch, kNoFrames};
  std::vector<ValuePlace> places;
  places.reserve(lengths.size());
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const FieldSpec& spec = schema.fields[i];
    const std::string odd = wrong_length(spec, lengths[i], frames);
    if (!odd.empty()) return Error{ErrorCode::schema_mismatch, odd};
    // 32 bits times at most 16 MiB, 64 times: the sum cannot wrap around.
    places.push_back({next_offered_place(end), std::uint64_t{lengths[i]} * frame_bytes(spec)});
    end = places.back().offset + places.back().bytes;
  }
  return places;
}

Result<void> check_sequence(const Schema& schema, const Sequence& sequence) {
  if (sequence.key.empty() || sequence.key.size() > kMaxKeyBytes) {
    return mismatch(sequence,
                    fmt::format("a key has 1 to 511 bytes, found {}", sequence.key.size()));
  }
  if (sequence.fields.size() != schema.fields.size()) {
    return mismatch(sequence, fmt::format("found {} fields, the schema has {}",
                                          sequence.fields.size(), schema.fields.size()));
  }
  const std::uint32_t length = sequence.fields[schema.primary()].length;
  if (length == 0) return mismatch(sequence, kNoFrames);
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    const FieldSpec& spec = schema.fields[i];
    const FieldValue& value = sequence.fields[i];
    const std::string odd = wrong_length(spec, value.length, length);
    if (!odd.empty()) return mismatch(sequence, odd);
    const std::size_t bytes = value.length * frame_bytes(spec);
    if (value.bytes.size() != bytes) {
      return mismatch(sequence, fmt::format("field \"{}\" has {} bytes, not {}", spec.name,
                                            value.bytes.size(), bytes));
    }
    const std::string wrong = describe_wrong_category(spec, value.bytes);
    if (!wrong.empty()) return mismatch(sequence, wrong);
  }
  return {};
}

std::size_t record_bytes(const Sequence& sequence) { return places_of(sequence).total; }

void write_record(const Sequence& sequence, Ordinal ordinal, std::uint32_t length,
                  std::span<std::byte> out) {
  const Places places = places_of(sequence);
  std::memset(out.data(), 0, kHeaderBytes);
  std::size_t end = kHeaderBytes;
  for (std::size_t i = 0; i < sequence.fields.size(); ++i) {
    const FieldValue& value = sequence.fields[i];
    const std::size_t offset = payload_offset(end);
    // Gaps are zeros, so that equal sequences have equal records, and equal CRCs.
    std::memset(out.data() + end, 0, offset - end);
    if (!value.bytes.empty())
      std::memcpy(out.data() + offset, value.bytes.data(), value.bytes.size());
    end = offset + value.bytes.size();
    const wire::RecordField entry(offset, value.bytes.size(), value.length, 0);
    std::memcpy(out.data() + places.table + i * kEntryBytes, &entry, kEntryBytes);
  }
  std::memset(out.data() + end, 0, places.key - end);
  std::memcpy(out.data() + places.key, sequence.key.data(), sequence.key.size());
  // The CRC stays 0 here: it covers the finished record, and set_record_crc() enters it.
  const wire::RecordHeader header(kMagic, 0, kVersion,
                                  static_cast<std::uint16_t>(sequence.fields.size()),
                                  static_cast<std::uint32_t>(sequence.key.size()), ordinal.value,
                                  length, 0, places.table, places.total);
  std::memcpy(out.data(), &header, kHeaderBytes);
}

std::span<const std::byte> record_crc_range(std::span<const std::byte> record) {
  return record.subspan(kCrcEnd);
}

std::uint32_t record_crc(std::span<const std::byte> record) {
  std::uint32_t crc = 0;
  std::memcpy(&crc, record.data() + 4, sizeof crc);
  return flatbuffers::EndianScalar(crc);
}

void set_record_crc(std::span<std::byte> record, std::uint32_t crc) {
  crc = flatbuffers::EndianScalar(crc);
  std::memcpy(record.data() + 4, &crc, sizeof crc);
}

Result<RecordView> RecordView::parse(const Schema& schema, std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes) return corrupt("shorter than its header");
  RecordView view;
  std::memcpy(&view.header_, bytes.data(), kHeaderBytes);
  view.bytes_ = bytes;
  if (auto checked = check_header(schema, view.header_, bytes.size()); !checked) {
    return checked.error();
  }
  // check_header() has found room for the table, and for the key before it.
  const std::byte* table = bytes.data() + view.header_.table_offset();
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    if (auto checked = check_entry(schema.fields[i], read_entry(table, i), view.header_);
        !checked) {
      return checked.error();
    }
  }
  const std::uint32_t key_bytes = view.header_.key_bytes();
  view.key_ = {reinterpret_cast<const char*>(table) - key_bytes, key_bytes};
  return view;
}

FieldValue RecordView::field(std::size_t i) const {
  const wire::RecordField entry = read_entry(bytes_.data() + header_.table_offset(), i);
  return {bytes_.subspan(entry.offset(), entry.bytes()), entry.length()};
}

}  // namespace batchwright
