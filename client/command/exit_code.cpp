#include "client/command/exit_code.h"

#include <fmt/core.h>

#include <cstdio>

namespace batchwright {

int exit_code(ErrorCode code) {
  // What another call, or other input, can mend is 2; for all else the same call may work later.
  switch (code) {
    case ErrorCode::not_found:
    case ErrorCode::store_unavailable:
    case ErrorCode::invalid_argument:
    case ErrorCode::bad_configuration:
    case ErrorCode::schema_mismatch:
    case ErrorCode::unsupported_version:
    case ErrorCode::infeasible: return kWrongInput;
    default: return kFailed;
  }
}

void warn(const std::string& text) {
  if (!text.empty()) fmt::print(stderr, "batchwright: {}\n", text);
}

int fail(const Error& error) {
  fmt::print(stderr, "batchwright: {}\n", error.message);
  return exit_code(error.code);
}

}  // namespace batchwright
