#include "storage/ingest/files/npy.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>

using namespace batchwright;

namespace {

/// A version 1.0 header around `dictionary`, padded the way NumPy does.
std::string header(std::string dictionary) {
  while ((10 + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(dictionary.size() & 0xff);
  bytes += static_cast<char>(dictionary.size() >> 8);
  return bytes + dictionary;
}

const std::string kGood = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";

Result<NpyHeader> parse(const std::string& bytes) {
  return parse_npy_header(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

std::string header_refusal(const std::string& dictionary) {
  const auto parsed = parse(header(dictionary));
  REQUIRE_FALSE(parsed);
  return parsed.error().message;
}

}  // namespace

TEST_CASE("storage: a .npy header gives dtype, shape and where the elements begin") {
  const auto parsed = parse(header(kGood));
  REQUIRE(parsed);
  CHECK(parsed->element == Element::float32);
  CHECK(parsed->shape == std::vector<std::uint64_t>{3, 4});
  CHECK(parsed->header_bytes == 128);
}

TEST_CASE("storage: a .npy header of version 2 has a length of four bytes") {
  const std::string text = kGood + "\n";
  std::string bytes("\x93NUMPY\x02\x00", 8);
  bytes += static_cast<char>(text.size());
  bytes += std::string(3, '\0') + text;
  const auto parsed = parse(bytes);
  REQUIRE(parsed);
  CHECK(parsed->header_bytes == 12 + text.size());
}

TEST_CASE("storage: a .npy header may spell its dictionary in other ways") {
  const auto parsed = parse(header("{\"shape\":(7,),'fortran_order':True ,'descr':'<i2'}"));
  REQUIRE(parsed);  // with one dimension Fortran order is C order
  CHECK(parsed->element == Element::int16);
  CHECK(parsed->shape == std::vector<std::uint64_t>{7});
  CHECK(parse(header("{'descr': '|u1', 'fortran_order': False, 'shape': ()}"))->shape.empty());
  const std::vector<std::uint64_t> wanted = {3, 4};
  CHECK(parse(header("\t{u'descr':\t'<f4',\r\n\t'fortran_order': False, 'shape': (3L, 4L)}"))
            ->shape == wanted);
  // No newline at its end.
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(kGood.size());
  bytes += '\0';
  CHECK(parse(bytes + kGood)->shape == wanted);
}

TEST_CASE("storage: a truncated .npy header never parses") {
  const std::string bytes = header(kGood);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<long>(size));
    CHECK_FALSE(parse_npy_header(std::as_bytes(std::span(cut))));
  }
}

TEST_CASE("storage: a .npy header that is not as NumPy writes it is refused") {
  for (const char* dictionary :
       {"", "{", "{}", "[]", "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}",
        "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x"}) {
    CAPTURE(dictionary);
    CHECK(header_refusal(dictionary).find("malformed .npy header") == 0);
  }
}

TEST_CASE("storage: element types that are not read are named") {
  CHECK(header_refusal("{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}")
            .find("elements are \"<c8\"; allowed: <f8 (float64), <f4 (float32)") == 0);
  for (const char* descr : {"<f16", "<U4", "|O", "<M8[ns]", "|S1", ">b2", "", "<", "f44", "x"}) {
    CAPTURE(descr);
    const std::string text =
        std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (3,)}";
    CHECK(header_refusal(text).find(std::string("elements are \"") + descr + "\"") == 0);
  }
}

TEST_CASE("storage: a .npy header that is refused says which entry and why") {
  const auto entry = [](const std::string& descr, const std::string& order,
                        const std::string& shape) {
    return header_refusal("{'descr': " + descr + ", 'fortran_order': " + order +
                          ", 'shape': " + shape + "}");
  };
  const std::string structured = entry("[('x', '<f4')]", "False", "(3,)");
  CHECK(structured.find("descr is [('x', '<f4')], ") != std::string::npos);
  CHECK(structured.ends_with("allowed: one plain type, such as '<f4' (no structured types)"));
  const std::string order = entry("'<f4'", "0", "(3,)");
  CHECK(order.find("fortran_order is 0, ") != std::string::npos);
  CHECK(order.ends_with("allowed: True, False"));
  CHECK(entry("'<f4'", "True", "(3)").find("shape is ") != std::string::npos);
  CHECK(header_refusal("{'descr': '<f4', 'more': 1}").find("an entry \"more\"; allowed: descr,") !=
        std::string::npos);
  CHECK(header_refusal("{'descr': '<f4', 'descr': '<f4'}").find("descr comes twice") !=
        std::string::npos);
  CHECK(header_refusal("{'descr': '<f4', 'shape': (3,)}").find("fortran_order is missing") !=
        std::string::npos);
}

TEST_CASE("storage: every plain type of NumPy's is read, in either byte order") {
  struct Case {
    const char* descr;
    const char* bytes;
    double value;
  };
  const auto value_of = [](const Case& one) {
    std::string file = header(std::string("{'descr': '") + one.descr +
                              "', 'fortran_order': False, 'shape': (1,)}");
    const auto parsed = parse(file);
    REQUIRE_MESSAGE(parsed, parsed.error().message);
    file.append(one.bytes, element_bytes(parsed->element));
    const auto array = parse_npy(std::as_bytes(std::span(file.data(), file.size())));
    REQUIRE_MESSAGE(array, array.error().message);
    const auto cast_array = cast(*array, is_float(array->element) ? DType::float32 : DType::int64);
    REQUIRE_MESSAGE(cast_array, cast_array.error().message);
    if (is_float(array->element)) {
      float value = 0;
      std::memcpy(&value, cast_array->bytes.data(), sizeof value);
      return static_cast<double>(value);
    }
    std::int64_t value = 0;
    std::memcpy(&value, cast_array->bytes.data(), sizeof value);
    return static_cast<double>(value);
  };
  // 1.5 is 0x3FF8..., 0x3FC00000 and 0x3E00.
  for (const Case& one : {Case{">f8", "\x3F\xF8\0\0\0\0\0\0", 1.5},
                          Case{">f4", "\x3F\xC0\0\0", 1.5},
                          Case{">f2", "\x3E\0", 1.5},
                          Case{"<f4", "\0\0\xC0\x3F", 1.5},
                          Case{"=f4", "\0\0\xC0\x3F", 1.5},
                          Case{"float32", "\0\0\xC0\x3F", 1.5},
                          Case{"d", "\0\0\0\0\0\0\xF8\x3F", 1.5},
                          Case{">i8", "\0\0\0\0\0\0\1\2", 258},
                          Case{">i4", "\xFF\xFF\xFF\xFE", -2},
                          Case{">i2", "\1\2", 258},
                          Case{">u2", "\xFF\xFE", 65534},
                          Case{">u4", "\0\0\1\2", 258},
                          Case{">u8", "\0\0\0\0\0\0\1\2", 258},
                          Case{"<u1", "\x80", 128},
                          Case{">i1", "\x80", -128},
                          Case{"|b1", "\1", 1},
                          Case{"|b1", "\0", 0},
                          Case{"|b1", "\7", 1},
                          Case{"?", "\1", 1},
                          Case{"bool", "\1", 1}}) {
    CAPTURE(one.descr);
    CHECK(value_of(one) == one.value);
  }
}

TEST_CASE("storage: masks of NumPy's bool are stored as uint8, cast or not") {
  std::string file = header("{'descr': '|b1', 'fortran_order': True, 'shape': (2, 2)}");
  file += std::string("\1\0\0\1", 4);
  auto array = parse_npy(std::as_bytes(std::span(file.data(), file.size())));
  REQUIRE(array);
  CHECK(stored_as(array->element) == DType::uint8);
  CHECK(cast(*array, DType::uint8));
}

TEST_CASE("storage: an array in Fortran order comes in C order") {
  // [[0, 1, 2], [3, 4, 5]] as NumPy writes it column by column.
  std::string file = header("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3)}");
  for (const int value : {0, 3, 1, 4, 2, 5}) file += {static_cast<char>(value), '\0'};
  const auto array = parse_npy(std::as_bytes(std::span(file.data(), file.size())));
  REQUIRE(array);
  CHECK(array->shape == std::vector<std::uint64_t>{2, 3});
  std::array<std::int16_t, 6> values{};
  REQUIRE(array->bytes.size() == sizeof values);
  std::memcpy(values.data(), array->bytes.data(), sizeof values);
  CHECK(values == std::array<std::int16_t, 6>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("storage: a .npy file that is cut anywhere, or has more after it, is refused") {
  std::string file = header(kGood) + std::string(48, 'x');
  CHECK(parse_npy(std::as_bytes(std::span(file.data(), file.size()))));
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::vector<char> cut(file.begin(), file.begin() + static_cast<long>(size));
    CHECK_FALSE(parse_npy(std::as_bytes(std::span(cut))));
  }
  file += 'x';
  CHECK_FALSE(parse_npy(std::as_bytes(std::span(file.data(), file.size()))));
}
