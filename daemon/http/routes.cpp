#include "daemon/http/routes.h"

#include <boost/url/pct_string_view.hpp>
#include <optional>

// Boost.URL decodes the parts of a target. It does not take the target apart: it would refuse
// characters that RFC 3986 wants encoded, as in a name in UTF-8.

namespace batchwright {
namespace {

constexpr std::string_view kAnyName = "NAME";

Result<std::string> percent_decoded(std::string_view text) {
  const auto encoded = boost::urls::make_pct_string_view(text);
  if (encoded) return encoded->decode();
  return Error{ErrorCode::invalid_argument, "a % is followed by two hexadecimal digits"};
}

/// What stands in the pattern's places of NAME, still encoded; empty when the path is another.
std::optional<std::vector<std::string_view>> names_in(std::string_view path,
                                                      std::string_view pattern) {
  const auto parts = split(path, '/');
  const auto wanted = split(pattern, '/');
  if (parts.size() != wanted.size()) return std::nullopt;
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (wanted[i] == kAnyName) {
      names.push_back(parts[i]);
    } else if (wanted[i] != parts[i]) {
      return std::nullopt;
    }
  }
  return names;
}

Result<std::map<std::string, std::string>> parse_query(std::string_view text) {
  std::map<std::string, std::string> query;
  for (const std::string_view part : split(text, '&')) {
    // "a&&b", a & at either end, or no query at all.
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    auto key = percent_decoded(part.substr(0, equals));
    if (!key) return key.error();
    const bool has_value = equals != std::string_view::npos;
    auto value = percent_decoded(has_value ? part.substr(equals + 1) : "");
    if (!value) return value.error();
    query[std::move(*key)] = std::move(*value);
  }
  return query;
}

Result<Target> parse_target(const std::vector<std::string_view>& names, std::string_view query) {
  Target target;
  for (const std::string_view encoded : names) {
    auto name = percent_decoded(encoded);
    if (!name) return name.error();
    target.names.push_back(std::move(*name));
  }
  auto parsed = parse_query(query);
  if (!parsed) return parsed.error();
  target.query = std::move(*parsed);
  return target;
}

}  // namespace

std::string known_paths(const Routes& routes) {
  std::string known;
  for (const auto& [path, unused] : routes.pages) known += " " + path;
  for (const auto& [path, unused] : routes.live) known += " " + path;
  for (const auto& [path, unused] : routes.later) known += " " + path;
  return known;
}

Result<std::pair<const LaterPage*, Target>> find_later(const Routes& routes,
                                                       std::string_view target) {
  const std::size_t mark = target.find('?');
  const std::string_view path = target.substr(0, mark);
  const std::string_view query = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  for (const auto& [pattern, page] : routes.later) {
    // Compared before it is decoded: %2F within a name is no separator.
    const auto names = names_in(path, pattern);
    if (!names) continue;
    auto parsed = parse_target(*names, query);
    if (!parsed) return parsed.error();
    return std::pair(&page, std::move(*parsed));
  }
  return std::pair<const LaterPage*, Target>(nullptr, {});
}

}  // namespace batchwright
