#include "daemon/http/host_names.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <functional>

namespace batchwright {
namespace {

/// ASCII only: std::tolower() would go by the locale.
std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

/// Without the port, and without the brackets of an IPv6 address.
std::string_view host_of(std::string_view header) {
  if (header.starts_with('[')) return header.substr(1, header.find(']') - 1);
  return header.substr(0, header.find(':'));
}

bool is_numeric(std::string_view host) {
  boost::system::error_code code;
  boost::asio::ip::make_address(std::string(host), code);
  return !code;
}

}  // namespace

HostNames::HostNames(const std::set<std::string>& more) : names_{"localhost"} {
  // A name that is cut need not end in a zero (gethostname(2)), so the last byte stays one.
  std::array<char, 256> own{};
  if (::gethostname(own.data(), own.size() - 1) == 0) names_.insert(lower(own.data()));
  for (const std::string& name : more) names_.insert(lower(name));
}

bool HostNames::includes(std::string_view header) const {
  std::string host = lower(host_of(header));
  // DNS rebinding needs a name: no attacker can have a number resolve to another one.
  if (is_numeric(host)) return true;
  // "host." is the same name, complete (RFC 1034).
  if (host.ends_with('.')) host.pop_back();
  return names_.contains(host);
}

std::string HostNames::text() const {
  std::string text = "numeric addresses";
  for (const std::string& name : names_) text += " " + name;
  return text;
}

}  // namespace batchwright
