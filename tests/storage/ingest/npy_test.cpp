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
  CHECK(header_refusal("{'descr': '>f4', 'fortran_order': False, 'shape': (3,)}").find("\">f4\"") !=
        std::string::npos);
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

TEST_CASE("storage: a .npy file that is cut anywhere, or has more behind it, is refused") {
  std::string file = header(kGood) + std::string(48, 'x');
  CHECK(parse_npy(std::as_bytes(std::span(file.data(), file.size()))));
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::vector<char> cut(file.begin(), file.begin() + static_cast<long>(size));
    CHECK_FALSE(parse_npy(std::as_bytes(std::span(cut))));
  }
  file += 'x';
  CHECK_FALSE(parse_npy(std::as_bytes(std::span(file.data(), file.size()))));
}
