#include "daemon/pages/readiness.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace batchwright {
namespace {

/// Why clients of a feed that is there may get nothing; empty: they are served.
std::string trouble_of(const Feed& feed) {
  if (feed.failure()) return fmt::format("failed: {}", feed.failure()->message);
  if (const auto& blockage = feed.blockage()) {
    return "blocked: " + describe(*blockage, WaitingTimes::Time::clock::now());
  }
  if (feed.state() == FeedState::starting) return "its first batches are being assembled";
  return feed.planning_trouble();
}

std::vector<std::string> feeds_of(const Server& server) {
  std::vector<std::string> names;
  for (const auto& feed : server.feeds()) names.push_back(feed->name());
  for (const AbsentFeed& feed : server.absent()) names.push_back(feed.name);
  return names;
}

}  // namespace

std::vector<NotReady> not_ready(const Server& server, const std::vector<std::string>& gone) {
  std::vector<NotReady> all;
  for (const auto& feed : server.feeds()) {
    if (std::string trouble = trouble_of(*feed); !trouble.empty()) {
      all.push_back({feed->name(), std::move(trouble)});
    }
  }
  for (const AbsentFeed& feed : server.absent()) {
    all.push_back({feed.name, feed.opening ? feed.why.message : "not served: " + feed.why.message});
  }
  for (const std::string& path : gone) {
    all.push_back({"", path + ": no longer this daemon's socket; restart the daemon"});
  }
  return all;
}

Reply readiness(const Server& server, const std::vector<std::string>& gone, const Target& target) {
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
