#pragma once

#include <chrono>
#include <string>

#include "formats/formats.h"

namespace batchwright {

/// The body that a daemon's page has, such as "/stats" of "http://127.0.0.1:9477", in short
/// "127.0.0.1:9477" (with a path, where the pages are below one), or of
/// "unix:///run/batchwright/stats.sock". Errors: invalid_argument (what is no such address),
/// disconnected, timed_out, io_error (any answer but 200).
Result<std::string> http_get(const std::string& address, const std::string& path,
                             std::chrono::milliseconds limit);

}  // namespace batchwright
