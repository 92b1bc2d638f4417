#pragma once

#include <cstdint>

namespace batchwright {

/// How much a line of the log matters, the least first.
enum class Severity : std::uint8_t { debug, info, warning, error, critical };

}  // namespace batchwright
