#include "daemon/http/listen_address.h"

#include <fmt/core.h>

#include <boost/asio/ip/address.hpp>
#include <utility>

#include "formats/formats.h"

namespace batchwright {
namespace {

Error refused(std::string_view text) {
  return {ErrorCode::bad_configuration,
          fmt::format("found \"{}\"; allowed: a numeric address and a port, such as "
                      "127.0.0.1:9477 or [::1]:9477",
                      text)};
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  // The last one: an IPv6 address has colons of its own, within its brackets.
  const std::size_t colon = text.rfind(':');
  // To make_address() a zero byte would be the end, and what follows a % an interface's name.
  constexpr std::string_view kNoPart("\0%", 2);
  if (colon == std::string_view::npos || text.find_first_of(kNoPart) != std::string_view::npos) {
    return refused(text);
  }
  const auto port = parse_whole<std::uint16_t>(text.substr(colon + 1));
  std::string host(text.substr(0, colon));
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  boost::system::error_code wrong;
  const auto address = boost::asio::ip::make_address(host, wrong);
  if (!port || wrong || address.is_v6() != bracketed) return refused(text);
  return ListenAddress{std::move(host), *port, address.is_loopback()};
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

std::string address_here(const std::string& given, std::uint16_t port, const std::string& secret) {
  if (port == 0) return given;
  // From here every address of this machine leads there.
  const std::string host = given.substr(0, given.rfind(':'));
  const std::string near = host == "0.0.0.0" ? "127.0.0.1" : host == "[::]" ? "[::1]" : host;
  return fmt::format("http://{}:{}/{}", near, port, secret.empty() ? "" : secret + "/");
}

std::optional<std::string_view> behind_secret(std::string_view target, std::string_view secret) {
  if (target.size() < secret.size() + 2) return std::nullopt;
  unsigned differs = static_cast<unsigned char>(target[0] ^ '/');
  for (std::size_t i = 0; i < secret.size(); ++i) {
    differs |= static_cast<unsigned char>(target[i + 1] ^ secret[i]);
  }
  const std::string_view rest = target.substr(secret.size() + 1);
  if (differs != 0 || rest[0] != '/') return std::nullopt;
  return rest;
}

}  // namespace batchwright
