// A stored record: parsed under one of several schemas, every accessor used, and written again.

#include <array>

#include "formats/formats.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/schemas.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

/// Readers take a record that holds the number of no category, which `verify` names; writers
/// refuse one.
bool categories_exist(const Schema& schema, const RecordView& record) {
  for (std::size_t i = 0; i < record.fields(); ++i) {
    const std::string wrong = describe_wrong_category(schema.fields[i], record.field(i).bytes);
    if (!wrong.empty()) return false;
  }
  return true;
}

/// A sound record holds what a writer accepts, and survives being written by one.
void write_again(const Schema& schema, const RecordView& record) {
  std::vector<FieldValue> values;
  for (std::size_t i = 0; i < record.fields(); ++i) values.push_back(record.field(i));
  const Sequence sequence{record.key(), values};
  require(check_sequence(schema, sequence).has_value() == categories_exist(schema, record),
          "a sound record's sequence is sound where its categories exist, and only there");
  std::vector<std::byte> bytes(record_bytes(sequence));
  write_record(sequence, record.ordinal(), record.length(), bytes);
  const auto again = RecordView::parse(schema, bytes);
  require(again.has_value(), "what was written can be read");
  require(again->key() == record.key() && again->ordinal() == record.ordinal() &&
              again->length() == record.length(),
          "what was read is what was written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Schema> schemas = record_schemas();
  Choices input(data, size);
  const Schema& schema = schemas[input.byte() % schemas.size()];
  const AlignedInput copy(input.rest());
  const auto record = RecordView::parse(schema, copy.bytes());
  if (!record) {
    require(record.error().code == ErrorCode::corrupt_record ||
                record.error().code == ErrorCode::unsupported_version,
            "a broken record is one of the two errors");
    return 0;
  }
  touch(record->key());
  touch(record_crc_range(copy.bytes()));
  static_cast<void>(record_crc(copy.bytes()));
  for (std::size_t i = 0; i < record->fields(); ++i) {
    const FieldValue value = record->field(i);
    touch(value.bytes);
    require(value.bytes.size() == std::uint64_t{value.length} * frame_bytes(schema.fields[i]),
            "a field has the bytes of its length");
  }
  write_again(schema, *record);
  return 0;
}
