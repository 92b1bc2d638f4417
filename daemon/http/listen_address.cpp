#include "daemon/http/listen_address.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <optional>
#include <utility>

#include "formats/formats.h"

namespace batchwright {

namespace {

constexpr std::string_view kUnix = "unix://";

Error refused(std::string_view text) {
  return {ErrorCode::bad_configuration,
          fmt::format("found \"{}\"; allowed: a numeric address and a port, such as "
                      "127.0.0.1:9477 or [::1]:9477",
                      text)};
}

/// Whether `host` is such an address and, if so, whether it is of the loopback.
std::optional<bool> loopback_v4(const std::string& host) {
  in_addr address{};
  if (inet_pton(AF_INET, host.c_str(), &address) != 1) return std::nullopt;
  // All of 127.0.0.0/8 is loopback.
  return ntohl(address.s_addr) >> 24 == 127;
}

std::optional<bool> loopback_v6(const std::string& host) {
  in6_addr address{};
  if (inet_pton(AF_INET6, host.c_str(), &address) != 1) return std::nullopt;
  return IN6_IS_ADDR_LOOPBACK(&address) != 0;
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  // The last one: an IPv6 address has colons of its own, within its brackets.
  const std::size_t colon = text.rfind(':');
  // A zero byte would end the address for inet_pton() and hide what follows.
  if (colon == std::string_view::npos || text.find('\0') != std::string_view::npos) {
    return refused(text);
  }
  const auto port = parse_whole<std::uint16_t>(text.substr(colon + 1));
  std::string host(text.substr(0, colon));
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto loopback = bracketed ? loopback_v6(host) : loopback_v4(host);
  if (!port || !loopback) return refused(text);
  return ListenAddress{std::move(host), *port, *loopback};
}

Result<std::variant<ListenAddress, UnixAddress>> parse_http_address(std::string_view text) {
  using Address = std::variant<ListenAddress, UnixAddress>;
  if (!text.starts_with(kUnix)) {
    auto address = parse_listen_address(text);
    return address ? Result<Address>(std::move(*address)) : address.error();
  }
  const std::string_view path = text.substr(kUnix.size());
  // A slash at the end names a folder, at which no socket can be bound.
  const bool fits = path.size() > 1 && path.size() <= kMaxSocketPath && path.front() == '/' &&
                    path.back() != '/' && path.find('\0') == std::string_view::npos;
  if (fits) return Address(UnixAddress{std::string(path)});
  return Error{
      ErrorCode::bad_configuration,
      fmt::format("found \"{}\"; allowed: unix:// and an absolute path of at most {} bytes", text,
                  kMaxSocketPath)};
}

}  // namespace batchwright
