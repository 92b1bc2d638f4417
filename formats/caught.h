#pragma once

#include <exception>
#include <string>

#include "formats/result.h"

namespace batchwright {

/// Returns the Result of `call`. What it throws, which is a lack of memory as a rule, becomes an
/// error instead: `doing`, such as "planning: ", and the exception's own words. Where a file is
/// compiled without exceptions (a minimal build's are), it ends the program.
template <class Call>
auto caught(ErrorCode code, const char* doing, const Call& call) -> decltype(call()) {
#ifdef __cpp_exceptions
  try {
    return call();
  } catch (const std::exception& thrown) {
    return Error{code, std::string(doing) + thrown.what()};
  }
#else
  static_cast<void>(code);
  static_cast<void>(doing);
  return call();
#endif
}

}  // namespace batchwright
