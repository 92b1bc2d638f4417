#pragma once

#include <string>

#include "formats/formats.h"

namespace batchwright {

/// Prints "batchwright: text" to stderr; nothing where there is no text.
void warn(const std::string& text);

/// Prints "batchwright: message" to stderr and returns the exit code for it, when nothing was done
/// before.
int fail(const Error& error);

/// The same of the exception that is being handled, which ends the program: with the limit, where
/// it is a thread or a file descriptor that is lacking.
int fail_by_thrown();

}  // namespace batchwright
