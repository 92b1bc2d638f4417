#pragma once

#include <cstddef>

namespace batchwright {

// Every chunk of a table begins with the CRC-32C of all that follows it, and its number of entries.
constexpr std::size_t kCrcEnd = 4;
constexpr std::size_t kHeaderBytes = 8;

}  // namespace batchwright
