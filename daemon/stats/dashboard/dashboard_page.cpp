#include "daemon/stats/dashboard/dashboard_page.h"

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace batchwright {

// The files' bytes, embedded at build time.
extern const std::string_view kChartScript;
extern const std::string_view kDashboardPage;
extern const std::string_view kDashboardStyle;
extern const std::string_view kDashboardFormat;
extern const std::string_view kDashboardElements;
extern const std::string_view kDashboardCharts;
extern const std::string_view kDashboardClients;
extern const std::string_view kDashboardLive;
extern const std::string_view kDashboardFeed;
extern const std::string_view kDashboardOverview;
extern const std::string_view kDashboardEvents;
extern const std::string_view kDashboardMain;

namespace {

constexpr std::string_view kNonce = "@NONCE@";

void replace_first(std::string& text, std::string_view mark, std::string_view by) {
  if (const std::size_t at = text.find(mark); at != std::string::npos) {
    text.replace(at, mark.size(), by);
  }
}

/// All but the word that changes with each answer.
std::string assembled() {
  // One script, so the parts share their names; what runs at once stands in the last one.
  std::string script;
  for (const std::string_view part :
       {kDashboardFormat, kDashboardElements, kDashboardCharts, kDashboardClients, kDashboardLive,
        kDashboardFeed, kDashboardOverview, kDashboardEvents, kDashboardMain}) {
    script += part;
  }
  std::string page(kDashboardPage);
  replace_first(page, "@STYLE@", kDashboardStyle);
  replace_first(page, "@CHART@", kChartScript);
  replace_first(page, "@SCRIPT@", script);
  return page;
}

/// 128 bits that cannot be guessed: only scripts that carry them run.
std::string make_nonce() {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device random;
  std::string nonce;
  for (int word = 0; word < 4; ++word) {
    std::uint32_t bits = random();
    for (int digit = 0; digit < 8; ++digit, bits >>= 4) nonce += kDigits[bits & 0xF];
  }
  return nonce;
}

std::string with_nonce(std::string_view page, std::string_view nonce) {
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t mark = page.find(kNonce, at);
    out += page.substr(at, mark - at);
    if (mark == std::string_view::npos) return out;
    out += nonce;
    at = mark + kNonce.size();
  }
}

}  // namespace

DashboardPage dashboard_page() {
  static const std::string page = assembled();
  const std::string nonce = make_nonce();
  // Nothing but what is in the page itself, and fetches from the daemon that it came from.
  std::string policy = fmt::format(
      "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self'; "
      "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      nonce);
  return {with_nonce(page, nonce), std::move(policy)};
}

}  // namespace batchwright
