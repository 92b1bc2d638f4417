#pragma once

#include <compare>
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
};

/// A program's name for itself, made safe for terminals: at most 64 bytes, control characters as
/// escapes. Messages to other clients contain it.
std::string program_name(std::string_view given);

inline std::string describe(const ClientInfo& client) {
  return (client.program.empty() ? "a client" : client.program) + " (pid " +
         std::to_string(client.pid) + ")";
}

}  // namespace batchwright
