#pragma once

#include <batchwright/values.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string_view>

#include "formats/base/base.h"
#include "formats/record.h"

namespace batchwright {

// The border of a library's C ABI: options and sequences that come in, and the error or the
// exception that a call ends in. Threads: each has an error's text of its own. So has each library,
// which links a copy.

/// Keeps the text for last_error_text() of this thread, and returns the code.
bw_status report(const Error& error) noexcept;

/// The message of this thread's last report(); empty before. Valid until the next one.
const char* last_error_text() noexcept;

/// A status in words, such as "not_found"; "unknown" for a number that is none.
const char* status_name(bw_status status) noexcept;

/// The error of options whose `struct_size` cannot be right.
Error wrong_struct_size(std::size_t size);

/// The caller's options, whose header may be older or newer than this library: what is missing
/// keeps its default, and what is unknown must be zero. Null: the defaults.
/// Errors: invalid_argument, unsupported (a newer option is set).
template <class Options>
Result<Options> read_options(const Options* given, Options defaults) {
  if (given == nullptr) return defaults;
  const std::size_t size = given->struct_size;
  // Options that were never set to anything mostly show here, before more of them is read.
  if (size < sizeof given->struct_size || size > 4096) {
    return wrong_struct_size(size);
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  const auto is_set = [](unsigned char byte) { return byte != 0; };
  // From a program built for a newer library: what it left at zero is no loss.
  if (size > sizeof defaults && std::any_of(bytes + sizeof defaults, bytes + size, is_set)) {
    return Error{ErrorCode::unsupported, "an option is set that this library is too old for"};
  }
  std::memcpy(&defaults, given, std::min(size, sizeof defaults));
  return defaults;
}

/// Reads the values of a program's sequence, one for each field of the schema, into `values`, which
/// has as many; they point to the program's bytes. check_sequence() checks the rest.
/// `whose` fields they are, such as "the dataset", is for messages.
/// Errors: schema_mismatch, invalid_argument, which name key and field.
Result<void> read_values(const bw_sequence& sequence, const Schema& schema, std::string_view whose,
                         std::span<FieldValue> values);

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
