#pragma once

#include <exception>
#include <new>
#include <string>

#include "client/batchwright/client.h"
#include "formats/formats.h"

namespace batchwright {

/// Keeps the text for bw_error_message() of this thread, and returns the code.
bw_status report(const Error& error) noexcept;

/// Runs `call`, which returns a bw_status; nothing it throws gets through.
template <class Call>
bw_status at_border(const Call& call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return report({ErrorCode::does_not_fit, "out of memory"});
  } catch (const std::exception& thrown) {
    return report({ErrorCode::internal, thrown.what()});
  } catch (...) {
    return report({ErrorCode::internal, "an unknown exception"});
  }
}

}  // namespace batchwright
