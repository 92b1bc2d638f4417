#pragma once

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

}  // namespace batchwright
