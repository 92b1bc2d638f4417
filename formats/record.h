#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/batch.h"
#include "formats/ids.h"
#include "formats/schema.h"
#include "record_generated.h"

namespace batchwright {

/// The value of one field of one sequence.
struct FieldValue {
  std::span<const std::byte> bytes;  ///< length * frame_bytes(field), row-major, little-endian.
  std::uint32_t length = 1;          ///< T, U, or 1 for a scalar.
};

/// One sequence as it is given to a dataset. It points to the caller's bytes.
struct Sequence {
  std::string_view key;
  std::span<const FieldValue> fields;  ///< Values in the order of the schema.
};

/// LMDB's limit; a key also has at least one byte.
inline constexpr std::size_t kMaxKeyBytes = 511;

/// A value's place in its sequence, and its bytes.
struct ValuePlace {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Where a value may start that comes after so many bytes of a sequence that is offered to a live
/// feed: a multiple of 64.
constexpr std::uint64_t next_offered_place(std::uint64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}
/// The places of the values of an offered sequence with these lengths, one for each field of the
/// schema (PROTOCOL.md, "Live feeds"). Errors: schema_mismatch for lengths that no sequence has.
Result<std::vector<ValuePlace>> offered_places(const Schema& schema,
                                               std::span<const std::uint32_t> lengths);

/// Checks key, number, lengths and sizes of the fields against the schema (which is valid), and
/// that the numbers of a field with categories are of those.
/// Errors: schema_mismatch, naming key and field, what was found and what is allowed.
Result<void> check_sequence(const Schema& schema, const Sequence& sequence);

/// Bytes that the record of a checked sequence takes.
std::size_t record_bytes(const Sequence& sequence);

/// Writes the record of a checked sequence to `out`, record_bytes() long, all but its CRC.
void write_record(const Sequence& sequence, Ordinal ordinal, std::uint32_t length,
                  std::span<std::byte> out);

/// The bytes of a record that its CRC-32C covers.
std::span<const std::byte> record_crc_range(std::span<const std::byte> record);

/// The CRC-32C that a record carries, and the way to set it. `record` has at least 8 bytes.
std::uint32_t record_crc(std::span<const std::byte> record);
void set_record_crc(std::span<std::byte> record, std::uint32_t crc);

/// A record whose structure was found sound; its CRC is the storage room's business.
/// It points into the bytes it was made from, and is valid as long as they are.
class RecordView {
 public:
  /// Checks magic, version, every bound and every size against the schema, and reads nothing
  /// outside `bytes`. Any alignment will do.
  /// Errors: corrupt_record, unsupported_version.
  static Result<RecordView> parse(const Schema& schema, std::span<const std::byte> bytes);

  Ordinal ordinal() const { return Ordinal{header_.ordinal()}; }
  std::uint32_t length() const { return header_.length(); }
  std::string_view key() const { return key_; }
  std::size_t fields() const { return header_.fields(); }
  FieldValue field(std::size_t i) const;

 private:
  wire::RecordHeader header_;
  std::span<const std::byte> bytes_;
  std::string_view key_;
};

}  // namespace batchwright
