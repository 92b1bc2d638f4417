#include <doctest/doctest.h>

#include <stdexcept>

#include "formats/formats.h"

using namespace batchwright;

TEST_CASE("formats: what a call throws becomes an error that says what was being done") {
  const auto thrown = as_result(ErrorCode::busy, "opening it: ", []() -> Result<int> {
    throw std::runtime_error("no memory");
  });
  REQUIRE_FALSE(thrown);
  CHECK(thrown.error().code == ErrorCode::busy);
  CHECK(thrown.error().message == "opening it: no memory");
}

TEST_CASE("formats: what a call returns, a value or an error, stays as it is") {
  const auto value = as_result(ErrorCode::internal, "", []() -> Result<int> { return 7; });
  REQUIRE(value);
  CHECK(*value == 7);
  const auto error = as_result(ErrorCode::internal, "planning: ", []() -> Result<int> {
    return Error{ErrorCode::not_found, "none"};
  });
  REQUIRE_FALSE(error);
  CHECK(error.error().code == ErrorCode::not_found);
  CHECK(error.error().message == "none");
}
