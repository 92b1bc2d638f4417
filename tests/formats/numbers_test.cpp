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
