#pragma once

#include <batchwright/values.h>

#include <exception>
#include <new>

#include "formats/result.h"

namespace batchwright {

/// The border of a library's C ABI: the error that a call ends in, and exceptions that end there.
/// Threads: each has a text of its own. Libraries have, too: each links its own copy.

/// Keeps the text for last_error_text() of this thread, and returns the code.
bw_status report(const Error& error) noexcept;

/// The message of this thread's last report(); empty before. Valid until the next one.
const char* last_error_text() noexcept;

/// A status in words, such as "not_found"; "unknown" for a number that is none.
const char* status_name(bw_status status) noexcept;

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
