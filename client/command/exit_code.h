#pragma once

#include <string>

#include "formats/formats.h"

namespace batchwright {

/// Prints "batchwright: text" to stderr; nothing where there is no text.
void warn(const std::string& text);

/// Prints "batchwright: message" to stderr and returns the exit code for it, when nothing was done
/// before.
int fail(const Error& error);

}  // namespace batchwright
