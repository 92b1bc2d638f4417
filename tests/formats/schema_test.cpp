#include <doctest/doctest.h>

#include "formats/formats.h"

using namespace batchwright;

namespace {

Schema recordings() {
  return {{{"features", FieldKind::primary, DType::float32, {80}, {}},
           {"language", FieldKind::scalar, DType::int32, {}, {"en", "es"}}},
          {{"sample_rate", "8000"}}};
}

std::string message_of(const Schema& schema) {
  const auto checked = validate(schema);
  return checked ? "" : checked.error().message;
}

}  // namespace

TEST_CASE("formats: a description gives back the schema it was made from") {
  const auto schema = decode_description(encode_description(recordings()));
  REQUIRE(schema);
  CHECK(*schema == recordings());
}

TEST_CASE("formats: a truncated description never decodes") {
  const auto bytes = encode_description(recordings());
  for (std::size_t size = 0; size < bytes.size() - 8; ++size) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<long>(size));
    CHECK_FALSE(decode_description(cut));
  }
}

TEST_CASE("formats: a description of a newer version is refused with both versions named") {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<flatbuffers::Offset<wire::Field>> none;
  wire::FinishDatasetDescriptionBuffer(
      builder, wire::CreateDatasetDescription(builder, 9, builder.CreateVector(none)));
  const auto schema = decode_description(
      {reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()});
  REQUIRE_FALSE(schema);
  CHECK(schema.error().code == ErrorCode::unsupported_version);
  CHECK(schema.error().message ==
        "dataset format version 9 is newer than version 1, the newest this program reads");
}

TEST_CASE("formats: a wrong schema is refused with the field named") {
  Schema schema = recordings();
  SUBCASE("no primary") {
    schema.fields.erase(schema.fields.begin());
    CHECK(message_of(schema) == "a schema has exactly one primary field, found 0");
  }
  SUBCASE("name twice") {
    schema.fields[1].name = "features";
    CHECK(message_of(schema) == "field \"features\": the name appears twice");
  }
  SUBCASE("an aligned field without content") {
    schema.fields[1].kind = FieldKind::aligned;
    schema.fields[1].categories.clear();
    schema.fields[1].shape = {3, 0};
    CHECK(message_of(schema) == "field \"" + schema.fields[1].name + "\": a dimension of 0");
  }
  SUBCASE("overflowing shape") {
    schema.fields[0].shape = {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF};
    CHECK(message_of(schema) == "field \"features\": a frame takes at most 16 MiB");
  }
  SUBCASE("unknown dtype") {
    schema.fields[0].dtype = static_cast<DType>(77);
    CHECK(message_of(schema) == "field \"features\": unknown dtype");
  }
}

TEST_CASE("formats: a field may have lengths and no content") {
  Schema schema = recordings();
  schema.fields[0].shape = {0};
  CHECK(validate(schema));
  CHECK(frame_bytes(schema.fields[0]) == 0);
}

TEST_CASE("formats: a field that is not there is refused with the names that are") {
  const auto found = recordings().find("labels");
  REQUIRE_FALSE(found);
  CHECK(found.error().message == "no field \"labels\"; the dataset has: features, language");
}

TEST_CASE("formats: the difference of two fingerprints is told by its parts") {
  CHECK(describe_difference({1, 2, 3}, {1, 2, 3}).empty());
  CHECK(describe_difference({1, 2, 3}, {9, 2, 4}) == "data and seed");
  CHECK(to_string(Fingerprint{1, 2, 0xabc}) ==
        "0000000000000001-0000000000000002-0000000000000abc");
}
