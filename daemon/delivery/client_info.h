#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// Who a client is, as its Hello says.
struct ClientInfo {
  SessionId session;
  std::uint64_t token = 0;  ///< The same after a reconnect.
  std::string program;
  std::uint32_t pid = 0;
  bool inline_batches = false;  ///< It has no arena: batches travel behind their tickets.
};

/// The name that a program gave itself, as others' terminals may show it: at most 64 bytes of it,
/// control characters as escapes. It is part of what other clients are told.
std::string program_name(std::string_view given);

inline std::string describe(const ClientInfo& client) {
  return (client.program.empty() ? "a client" : client.program) + " (pid " +
         std::to_string(client.pid) + ")";
}

}  // namespace batchwright
