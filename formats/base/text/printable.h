#pragma once

#include <cstddef>
#include <string>

namespace batchwright {

/// A key as it may stand in a message of one line: control characters, which only a damaged or an
/// odd key has, become '?'.
inline std::string printable(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) c = '?';
  }
  return text;
}

/// What was found, as a message quotes it: what is long is cut off.
inline std::string shortened(std::string text) {
  constexpr std::size_t kMost = 60;  // bytes
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

}  // namespace batchwright
