#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "formats/formats.h"

namespace batchwright {

/// A port to listen on.
struct ListenAddress {
  std::string host;        ///< Numeric IPv4 or IPv6 address, without brackets.
  std::uint16_t port = 0;  ///< 0: any free one.
  bool loopback = true;    ///< False: other machines can reach it.
};

/// Reads "127.0.0.1:9477" or "[::1]:9477". Names are refused: what they mean may change.
/// Errors: bad_configuration, with what was found and what is allowed.
Result<ListenAddress> parse_listen_address(std::string_view text);

/// A Unix socket to listen on.
struct UnixAddress {
  std::string path;  ///< Absolute.
};

/// An address to listen at for HTTP: as above, or "unix://" and an absolute path of at most 107
/// bytes.
/// Errors: bad_configuration, with what was found and what is allowed.
Result<std::variant<ListenAddress, UnixAddress>> parse_http_address(std::string_view text);

/// An address as clients on this machine use it: with http://, the port that was bound, a host that
/// leads there, and the secret. `port` is 0 for a Unix socket, which stays as it is.
std::string address_here(const std::string& given, std::uint16_t port, const std::string& secret);

/// The target behind "/SECRET"; none where it begins with anything else. How long that takes does
/// not tell how much of a guess was right.
std::optional<std::string_view> behind_secret(std::string_view target, std::string_view secret);

}  // namespace batchwright
