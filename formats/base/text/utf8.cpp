#include "formats/base/text/utf8.h"

// Boost.Nowide has such a function, but replaces a broken character together with the sound one
// behind it: of "\xE2(" the bracket would be lost.

namespace batchwright {
namespace {

/// Bytes of the UTF-8 character at `text[at]`; 0 when what stands there is none. Overlong forms,
/// surrogates and what lies behind U+10FFFF are none (RFC 3629).
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned a = byte(0), b = byte(1);
  if (a < 0x80) return 1;
  if (a >= 0xC2 && a <= 0xDF) return follows(1) ? 2 : 0;
  if (a >= 0xE0 && a <= 0xEF) {
    const bool wrong = (a == 0xE0 && b < 0xA0) || (a == 0xED && b > 0x9F);
    return !wrong && follows(1) && follows(2) ? 3 : 0;
  }
  if (a >= 0xF0 && a <= 0xF4) {
    const bool wrong = (a == 0xF0 && b < 0x90) || (a == 0xF4 && b > 0x8F);
    return !wrong && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string utf8(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text, at);
    if (bytes == 0) {
      // U+FFFD for each byte that begins no character; the next byte may begin one.
      out += "\xEF\xBF\xBD";
      ++at;
    } else {
      out += text.substr(at, bytes);
      at += bytes;
    }
  }
  return out;
}

}  // namespace batchwright
