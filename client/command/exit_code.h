#pragma once

#include <string>

#include "formats/formats.h"

namespace batchwright {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;      ///< The work failed.
inline constexpr int kWrongInput = 2;  ///< The call or its input is wrong.

/// The exit code for an error, when nothing was done before it.
int exit_code(ErrorCode code);

/// Prints "batchwright: text" to stderr; nothing where there is no text.
void warn(const std::string& text);

/// Prints "batchwright: message" to stderr and returns the exit code.
int fail(const Error& error);

}  // namespace batchwright
