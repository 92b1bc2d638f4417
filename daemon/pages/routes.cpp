#include "daemon/pages/routes.h"

#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>

#include "daemon/pages/plan_pages.h"

namespace batchwright {
namespace {

constexpr const char* kPlainText = "text/plain; charset=utf-8";

/// Ready once every feed has its first batches. The daemon is not ready while a feed has failed, or
/// cannot plan an epoch that a client waits for: trainers sent here would get nothing.
Reply readiness(const Server& server, const std::vector<std::string>& gone) {
  std::string missing;
  for (const auto& feed : server.feeds()) {
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

}  // namespace

Routes make_routes(boost::asio::io_context& loop, std::function<StatsSource()> figures,
                   Server& server, std::function<std::vector<std::string>()> gone) {
  // One text for both paths: a reader that changes from one to the other never sees a figure
  // decrease.
  const auto stats = std::make_shared<KeptText>([figures] { return render_stats(figures()); });
  const auto metrics = std::make_shared<KeptText>(
      [figures = std::move(figures)] { return render_metrics(figures()); });
  Routes routes;
  routes.pages["/stats"] = [stats] { return Reply{200, "application/json", stats->text()}; };
  routes.live["/live"] = [stats] { return stats->text(); };
  routes.pages["/metrics"] = [metrics] { return Reply{200, kMetricsType, metrics->text()}; };
  routes.pages["/"] = [] {
    DashboardPage page = dashboard_page();
    return Reply{
        200,
        "text/html; charset=utf-8",
        std::move(page.html),
        {{"Content-Security-Policy", std::move(page.policy)}, {"Referrer-Policy", "no-referrer"}}};
  };
  // Alive is what answers: a loop that hangs does not. Whether it serves is /readyz's to say.
  routes.pages["/healthz"] = [] { return Reply{200, kPlainText, "ok\n"}; };
  routes.pages["/readyz"] = [&server, gone = std::move(gone)] { return readiness(server, gone()); };
  // Later, since a plan may take seconds, which the loop does not have.
  routes.later["/feeds/NAME/plan"] = [pages = std::make_shared<PlanPages>(loop, server)](
                                         const Target& target, PlanPages::Answer answer) {
    pages->answer(target, std::move(answer));
  };
  return routes;
}

}  // namespace batchwright
