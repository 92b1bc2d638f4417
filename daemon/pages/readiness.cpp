#include "daemon/pages/readiness.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace batchwright {
namespace {

std::vector<std::string> feeds_of(const ServerStatus& server) {
  std::vector<std::string> names;
  for (const FeedStatus& feed : server.feeds) names.push_back(feed.name);
  return names;
}

}  // namespace

std::vector<NotReady> not_ready(const ServerStatus& server, const std::vector<std::string>& gone) {
  std::vector<NotReady> all;
  for (const FeedStatus& feed : server.feeds) {
    if (!feed.not_ready.empty()) all.push_back({feed.name, feed.not_ready});
  }
  for (const std::string& path : gone) {
    all.push_back({"", path + ": no longer this daemon's socket; restart the daemon"});
  }
  return all;
}

Reply readiness(const ServerStatus& server, const std::vector<std::string>& gone,
                const Target& target) {
  const auto asked = target.query.find("feed");
  if (asked != target.query.end()) {
    const std::vector<std::string> feeds = feeds_of(server);
    if (std::find(feeds.begin(), feeds.end(), asked->second) == feeds.end()) {
      return {
          404, kPlainText,
          fmt::format("no feed \"{}\"; configured: {}\n", asked->second, fmt::join(feeds, ", "))};
    }
  }
  std::string lines;
  for (const NotReady& each : not_ready(server, gone)) {
    if (each.feed.empty()) {
      lines += each.why + "\n";
    } else if (asked == target.query.end() || asked->second == each.feed) {
      lines += fmt::format("feed {}: {}\n", each.feed, each.why);
    }
  }
  if (lines.empty()) return {200, kPlainText, "ready\n"};
  return {503, kPlainText, "not ready\n" + lines};
}

}  // namespace batchwright
