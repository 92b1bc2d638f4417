#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// Where to listen for HTTP.
struct ListenAddress {
  std::string host;        ///< Numeric IPv4 or IPv6 address, without brackets.
  std::uint16_t port = 0;  ///< 0: any free one.
  bool loopback = true;    ///< False: other machines can reach it.
};

/// Reads "127.0.0.1:9477" or "[::1]:9477". Names are refused: what they mean may change.
/// Errors: bad_configuration, with what was found and what is allowed.
Result<ListenAddress> parse_listen_address(std::string_view text);

}  // namespace batchwright
