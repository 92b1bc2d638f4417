#include "client/command/find_pages.h"

#include <fmt/core.h>

#include "daemon/config/config.h"

namespace batchwright {

std::vector<std::string> endpoints_in(const std::string& text) {
  std::vector<std::string> endpoints;
  for (const std::string_view each : split(text, ',')) endpoints.emplace_back(each);
  return endpoints;
}

Result<std::vector<std::string>> find_pages(const std::string& endpoint) {
  const auto none = [&endpoint](const std::string& why) {
    return Error{ErrorCode::not_found,
                 fmt::format("{}: {}; allowed: --stats with the address of the daemon's pages",
                             endpoint, why)};
  };
  if (!endpoint.starts_with(kIpc)) return none("the pages of such a daemon are on its own host");
  const auto text = file_text(endpoint.substr(kIpc.size()) + std::string(kPagesSuffix));
  if (!text) return none(fmt::format("no daemon there names its pages ({})", text.error().message));
  std::vector<std::string> pages;
  for (const std::string_view line : split_lines(*text)) {
    if (!line.empty()) pages.emplace_back(line);
  }
  if (pages.empty()) return none("the daemon there has no pages");
  return pages;
}

}  // namespace batchwright
