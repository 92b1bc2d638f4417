#include "daemon/delivery/feed/ids.h"

#include <fmt/format.h>

namespace batchwright {
namespace {

constexpr std::size_t kLongestName = 64;

}  // namespace

/// C1 controls, U+0080 to U+009F, begin with C2 in UTF-8.
std::string program_name(std::string_view given) {
  const std::string text = utf8(given.substr(0, kLongestName));
  std::string shown;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const auto next = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0U;
    if (byte < 0x20 || byte == 0x7F) {
      shown += fmt::format("\\x{:02X}", byte);
    } else if (byte == 0xC2 && next >= 0x80 && next <= 0x9F) {
      shown += fmt::format("\\x{:02X}", next);
      ++at;
    } else {
      shown += text[at];
    }
  }
  return shown;
}

}  // namespace batchwright
