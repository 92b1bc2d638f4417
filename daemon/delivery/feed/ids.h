#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// A subscription's name: the session's, and the number the client chose.
struct SubscriptionKey {
  SessionId session;
  SubscriptionNumber number;
  friend constexpr auto operator<=>(const SubscriptionKey&, const SubscriptionKey&) = default;
};

/// A client, as described by its Hello.
struct ClientInfo {
  SessionId session;
  std::uint64_t token = 0;  ///< The same after a reconnect.
  std::string program;
  std::uint32_t pid = 0;
  bool inline_batches = false;  ///< It has no arena: batches travel behind their tickets.
  Abilities abilities{};        ///< Those that it and this daemon have.
  bool produces = false;        ///< It pushes to live feeds, and subscribes to none.
};

/// A program's name for itself, made safe for terminals: at most 64 bytes, control characters as
/// escapes. Messages to other clients contain it.
inline std::string program_name(std::string_view given) {
  constexpr std::size_t kLongestName = 64;
  const std::string text = utf8(given.substr(0, kLongestName));
  std::string shown;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const auto next = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0U;
    if (byte < 0x20 || byte == 0x7F) {
      shown += fmt::format("\\x{:02X}", byte);
    } else if (byte == 0xC2 && next >= 0x80 && next <= 0x9F) {
      shown += fmt::format("\\x{:02X}", next);  // C1 controls begin with C2 in UTF-8
      ++at;
    } else {
      shown += text[at];
    }
  }
  return shown;
}

inline std::string describe(const ClientInfo& client) {
  return (client.program.empty() ? "a client" : client.program) + " (pid " +
         std::to_string(client.pid) + ")";
}

}  // namespace batchwright
