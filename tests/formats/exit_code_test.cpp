#include <doctest/doctest.h>

#include "formats/formats.h"

using namespace batchwright;

TEST_CASE("formats: only what no retry mends ends the daemon with 2") {
  for (const auto code : {ErrorCode::invalid_argument, ErrorCode::bad_configuration}) {
    CHECK(exit_codes(code).daemon == kWrongInput);
  }
  for (const auto code : {ErrorCode::not_found, ErrorCode::store_unavailable, ErrorCode::infeasible,
                          ErrorCode::busy, ErrorCode::does_not_fit}) {
    CHECK(exit_codes(code).daemon == kFailed);
  }
}

TEST_CASE("formats: a command ends with 2 for what it was given, and 1 for a lack of room") {
  for (const auto code :
       {ErrorCode::invalid_argument, ErrorCode::bad_configuration, ErrorCode::not_found,
        ErrorCode::store_unavailable, ErrorCode::schema_mismatch, ErrorCode::unsupported_version,
        ErrorCode::infeasible}) {
    CHECK(exit_codes(code).command == kWrongInput);
  }
  CHECK(exit_codes(ErrorCode::does_not_fit).command == kFailed);
  CHECK(exit_codes(ErrorCode::io_error).command == kFailed);
}
