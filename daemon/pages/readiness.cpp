#include "daemon/pages/readiness.h"

#include <fmt/core.h>

namespace batchwright {

Reply readiness(const Server& server, const std::vector<std::string>& gone) {
  std::string missing;
  for (const auto& feed : server.feeds()) {
    if (const auto& blockage = feed->blockage(); blockage && !feed->failure()) {
      missing += fmt::format("feed {}: blocked: {}\n", feed->name(),
                             describe(*blockage, WaitingTimes::Time::clock::now()));
      continue;
    }
    switch (feed->state()) {
      case FeedState::serving:
        if (const std::string trouble = feed->planning_trouble(); !trouble.empty()) {
          missing += fmt::format("feed {}: {}\n", feed->name(), trouble);
        }
        break;
      case FeedState::starting:
        missing += fmt::format("feed {}: its first batches are being assembled\n", feed->name());
        break;
      case FeedState::failed:
        missing += fmt::format("feed {}: failed: {}\n", feed->name(), feed->failure()->message);
        break;
    }
  }
  for (const AbsentFeed& feed : server.absent()) {
    missing += fmt::format("feed {}: not served: {}\n", feed.name, feed.why.message);
  }
  for (const std::string& path : gone) {
    missing += fmt::format("{}: no longer this daemon's socket; restart the daemon\n", path);
  }
  if (missing.empty()) return {200, kPlainText, "ready\n"};
  return {503, kPlainText, "not ready\n" + missing};
}

}  // namespace batchwright
