#include "daemon/pages/routes.h"

#include <memory>
#include <string>
#include <utility>

#include "daemon/pages/plan_pages.h"

namespace batchwright {
namespace {

constexpr const char* kText = "text/plain; charset=utf-8";

/// Ready once every feed has its first batches. The daemon is not ready while a feed has failed, or
/// cannot plan an epoch that a client waits for: trainers sent here would get nothing.
Reply readiness(const Server& server, const std::vector<std::string>& gone) {
  std::string missing;
  for (const auto& feed : server.feeds()) {
    switch (feed->state()) {
      case FeedState::serving:
        if (const std::string trouble = feed->planning_trouble(); !trouble.empty()) {
          missing += "feed " + feed->name() + ": " + trouble + "\n";
        }
        break;
      case FeedState::starting:
        missing += "feed " + feed->name() + ": its first batches are being assembled\n";
        break;
      case FeedState::failed:
        missing += "feed " + feed->name() + ": failed: " + feed->failure()->message + "\n";
        break;
    }
  }
  for (const AbsentFeed& feed : server.absent()) {
    missing += "feed " + feed.name + ": not served: " + feed.why.message + "\n";
  }
  for (const std::string& path : gone) {
    missing += path + ": no longer this daemon's socket; restart the daemon\n";
  }
  if (missing.empty()) return {200, kText, "ready\n"};
  return {503, kText, "not ready\n" + missing};
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
  routes.pages["/healthz"] = [] { return Reply{200, kText, "ok\n"}; };
  routes.pages["/readyz"] = [&server, gone = std::move(gone)] { return readiness(server, gone()); };
  // Later, since a plan may take seconds, which the loop does not have.
  routes.later["/feeds/NAME/plan"] = [pages = std::make_shared<PlanPages>(loop, server)](
                                         const Target& target, PlanPages::Answer answer) {
    pages->answer(target, std::move(answer));
  };
  return routes;
}

}  // namespace batchwright
