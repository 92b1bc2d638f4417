#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include "formats/formats.h"

using namespace batchwright;

namespace {

Schema speech() {
  return {{{"features", FieldKind::primary, DType::float32, {3}, {}},
           {"targets", FieldKind::aligned, DType::int16, {}, {}},
           {"tokens", FieldKind::independent, DType::int32, {}, {}},
           {"speaker", FieldKind::scalar, DType::uint8, {}, {}}},
          {}};
}

struct Sample {
  std::vector<float> features = {1, 2, 3, 4, 5, 6};
  std::vector<std::int16_t> targets = {10, 20};
  std::vector<std::int32_t> tokens = {100, 200, 300};
  std::uint8_t speaker = 9;
  std::vector<FieldValue> values = {{std::as_bytes(std::span(features)), 2},
                                    {std::as_bytes(std::span(targets)), 2},
                                    {std::as_bytes(std::span(tokens)), 3},
                                    {std::as_bytes(std::span(&speaker, 1)), 1}};
  Sequence sequence{"some/key", values};
};

std::vector<std::byte> record_of(const Sample& sample) {
  std::vector<std::byte> record(record_bytes(sample.sequence));
  write_record(sample.sequence, Ordinal{5}, 2, record);
  return record;
}

}  // namespace

TEST_CASE("formats: a record gives back key, ordinal, lengths and bytes") {
  const Sample sample;
  REQUIRE(check_sequence(speech(), sample.sequence));
  const auto record = record_of(sample);
  const auto view = RecordView::parse(speech(), record);
  REQUIRE(view);
  CHECK(view->key() == "some/key");
  CHECK(view->ordinal().value == 5);
  CHECK(view->length() == 2);
  CHECK(view->field(2).length == 3);
  CHECK(std::memcmp(view->field(0).bytes.data(), sample.features.data(), 24) == 0);
  CHECK(view->field(3).bytes[0] == std::byte{9});
}

TEST_CASE("formats: payloads lie at 48 plus a multiple of 64 bytes, zeros between") {
  const Sample sample;
  const auto record = record_of(sample);
  const auto view = RecordView::parse(speech(), record);
  REQUIRE(view);
  for (std::size_t i = 0; i < view->fields(); ++i) {
    CHECK((view->field(i).bytes.data() - record.data()) % 64 == 48);
  }
}

TEST_CASE("formats: a record is readable at an odd address") {
  const auto record = record_of(Sample{});
  std::vector<std::byte> shifted(record.size() + 1);
  std::memcpy(shifted.data() + 1, record.data(), record.size());
  const auto view = RecordView::parse(speech(), std::span(shifted).subspan(1));
  REQUIRE(view);
  CHECK(view->field(1).length == 2);
}

TEST_CASE("formats: a truncated record never parses") {
  const auto record = record_of(Sample{});
  for (std::size_t size = 0; size < record.size(); ++size) {
    const std::vector<std::byte> cut(record.begin(), record.begin() + static_cast<long>(size));
    CHECK_FALSE(RecordView::parse(speech(), cut));
  }
}

TEST_CASE("formats: a record with any structural byte flipped parses within its bounds or not") {
  const auto record = record_of(Sample{});
  for (std::size_t i = 0; i < record.size() * 8; ++i) {
    auto flipped = record;
    flipped[i / 8] ^= std::byte{1} << (i % 8);
    const auto view = RecordView::parse(speech(), flipped);
    if (!view) continue;
    for (std::size_t f = 0; f < view->fields(); ++f) {
      const auto bytes = view->field(f).bytes;
      CHECK(bytes.data() >= flipped.data());
      CHECK(bytes.data() + bytes.size() <= flipped.data() + flipped.size());
    }
  }
}

TEST_CASE("formats: a number without a category is named, in each dtype") {
  const std::vector<std::string> three = {"a", "b", "c"};
  const auto look = [&](DType dtype, auto number) {
    const std::array<decltype(number), 3> values{0, 2, number};
    return describe_wrong_category({"label", FieldKind::aligned, dtype, {}, three},
                                   std::as_bytes(std::span(values)));
  };
  CHECK(look(DType::uint8, std::uint8_t{1}).empty());
  CHECK(look(DType::int16, std::int16_t{2}).empty());
  CHECK(look(DType::uint8, std::uint8_t{3}) ==
        "field \"label\" has the value 3; allowed: 0 to 2, the numbers of its categories");
  CHECK(look(DType::int16, std::int16_t{-1}).find("value -1;") != std::string::npos);
  CHECK(look(DType::int32, std::int32_t{70'000}).find("value 70000;") != std::string::npos);
  CHECK(look(DType::int64, std::int64_t{1} << 40).find("value 1099511627776;") !=
        std::string::npos);
  CHECK(describe_wrong_category({"t", FieldKind::scalar, DType::uint8, {}, {}},
                                std::as_bytes(std::span("9", 1)))
            .empty());
}

TEST_CASE("formats: a sequence that does not fit the schema names key, field and sizes") {
  Sample sample;
  SUBCASE("aligned length") {
    sample.values[1].length = 3;
    const auto checked = check_sequence(speech(), sample.sequence);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().message == "key \"some/key\": field \"targets\" has length 3, not 2");
  }
  SUBCASE("bytes") {
    sample.values[0].bytes = sample.values[0].bytes.first(20);
    const auto checked = check_sequence(speech(), sample.sequence);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().message.find("has 20 bytes, not 24") != std::string::npos);
  }
  SUBCASE("no frames") {
    sample.values[0] = {{}, 0};
    CHECK_FALSE(check_sequence(speech(), sample.sequence));
  }
  SUBCASE("a number that no category has") {
    Schema schema = speech();
    schema.fields[3].categories = {"ann", "bob"};
    const auto checked = check_sequence(schema, sample.sequence);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().message ==
          "key \"some/key\": field \"speaker\" has the value 9; allowed: 0 to 1, the numbers of "
          "its categories");
  }
  SUBCASE("empty key") {
    sample.sequence.key = "";
    CHECK_FALSE(check_sequence(speech(), sample.sequence));
  }
}

TEST_CASE("formats: the values of an offered sequence lie one after the other at multiples of 64") {
  Schema schema;
  schema.fields = {{"x", FieldKind::primary, DType::float32, {2}, {}, 0},
                   {"ids", FieldKind::aligned, DType::int32, {}, {}, 0},
                   {"text", FieldKind::independent, DType::uint8, {}, {}, 0},
                   {"score", FieldKind::scalar, DType::float32, {}, {}, 0}};
  const std::vector<std::uint32_t> lengths{9, 9, 0, 1};  // of an independent field 0, too
  const auto places = offered_places(schema, lengths);
  REQUIRE(places);
  REQUIRE(places->size() == 4);
  CHECK((*places)[0].offset == 0);
  CHECK((*places)[0].bytes == 72);
  CHECK((*places)[1].offset == 128);
  CHECK((*places)[1].bytes == 36);
  CHECK((*places)[2].offset == 192);
  CHECK((*places)[2].bytes == 0);
  CHECK((*places)[3].offset == 192);
  CHECK((*places)[3].bytes == 4);
  const auto refused = [&schema](const std::vector<std::uint32_t>& of) {
    const auto found = offered_places(schema, of);
    return found ? "" : found.error().message;
  };
  CHECK(refused({0, 0, 0, 1}) == "no frames; a sequence has at least one");
  CHECK(refused({9, 8, 0, 1}) == "field \"ids\" has length 8, not 9");
  CHECK(refused({9, 9, 0, 9}) == "field \"score\" has length 9, not 1");
}
