#pragma once

#include <exception>
#include <string>

#include "formats/base/result.h"

namespace batchwright {

/// Returns the Result of `call`. What it throws, which is a lack of memory as a rule, becomes an
/// error instead: `doing`, such as "planning: ", and the exception's own words.
template <class Call>
auto as_result(ErrorCode code, const char* doing, const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& thrown) {
    return Error{code, std::string(doing) + thrown.what()};
  }
}

}  // namespace batchwright
