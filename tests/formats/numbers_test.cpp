#include "formats/numbers.h"

#include <doctest/doctest.h>

#include <limits>
#include <span>

using namespace batchwright;

namespace {

std::optional<std::int64_t> whole(DType dtype, double value) {
  const NumberBytes number = number_bytes(dtype, value);
  return whole_number(dtype, std::span(number.element).first(number.bytes));
}

}  // namespace

TEST_CASE("formats: a whole number is read as it was put") {
  for (const DType dtype : {DType::int64, DType::int32, DType::int16}) {
    for (const double value : {0.0, 1.0, -1.0, 32767.0, -32768.0})
      CHECK(whole(dtype, value) == value);
  }
  CHECK(whole(DType::uint8, 255) == 255);
  CHECK(whole(DType::int64, 1e300) == std::numeric_limits<std::int64_t>::max());
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    CHECK_FALSE(whole(dtype, 1));
  }
}

TEST_CASE(
    "formats: the first number that is not finite is found, whatever the dtype and alignment") {
  const auto look = [](DType dtype, std::vector<std::uint64_t> patterns) {
    const std::size_t size = dtype_bytes(dtype);
    std::vector<std::byte> bytes(1 + patterns.size() * size);  // at an odd address
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      std::memcpy(bytes.data() + 1 + i * size, &patterns[i], size);
    }
    return first_not_finite(dtype, std::span(bytes).subspan(1));
  };
  std::vector<std::uint64_t> many(200, 0x3F80);
  CHECK_FALSE(look(DType::bfloat16, many));
  for (const std::size_t place : {0U, 63U, 64U, 199U}) {
    many[place] = 0xFF80;  // -infinity
    CHECK(look(DType::bfloat16, many) == place);
    many[place] = 0x3F80;
  }
  CHECK_FALSE(look(DType::float32, {0x7F7FFFFF, 0, 0x80000000, 0x00000001}));
  CHECK(look(DType::float32, {1, 0x7FC00000}) == 1);
  CHECK(look(DType::float32, {0xFF800001}) == 0);
  CHECK_FALSE(look(DType::float16, {0x7BFF, 0xFBFF}));
  CHECK(look(DType::float16, {0x7BFF, 0x7C00}) == 1);
  CHECK_FALSE(look(DType::int32, {0x7FC00000}));
  CHECK_FALSE(look(DType::float32, {}));
}
