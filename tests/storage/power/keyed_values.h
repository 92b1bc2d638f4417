#pragma once

#include <cstdint>
#include <string>

// What keyed_writer writes, and the test finds.

namespace batchwright::test {

inline constexpr const char* kKeyedTables[] = {"last", "values"};
inline constexpr std::uint64_t kKeyedWrites = 24;
inline constexpr std::uint64_t kKeyedKept = 5;  ///< The latest values; those before are erased.

/// Some take pages of their own.
inline std::string keyed_value(std::uint64_t number) {
  return std::string(50 + number % 3 * 6000, static_cast<char>('a' + number % 26));
}

}  // namespace batchwright::test
