#include <doctest/doctest.h>

#include <string>

#include "formats/formats.h"

using namespace batchwright;

TEST_CASE("formats: FNV-1a and SplitMix64 give the values their authors print") {
  CHECK(fnv1a(kFnv1aBasis, "") == 0xCBF29CE484222325u);
  CHECK(fnv1a(kFnv1aBasis, "a") == 0xAF63DC4C8601EC8Cu);
  CHECK(fnv1a(kFnv1aBasis, "foobar") == 0x85944171F73967E8u);
  CHECK(mix64(kGoldenStep) == 0xE220A8397B1DCDAFu);  // the first number of SplitMix64 with seed 0
}

TEST_CASE("formats: a number is hashed as its eight bytes, the lowest first") {
  const std::string bytes("\x08\x07\x06\x05\x04\x03\x02\x01", 8);
  CHECK(fnv1a(kFnv1aBasis, std::uint64_t{0x0102030405060708}) == fnv1a(kFnv1aBasis, bytes));
}
