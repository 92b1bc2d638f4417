#include "daemon/routes.h"

#include <memory>
#include <string>
#include <utility>

#include "daemon/plan_pages.h"

namespace batchwright {
namespace {

constexpr const char* kText = "text/plain; charset=utf-8";

/// Ready once every feed has its first batches. A feed that failed makes it not ready, for whoever
/// sends trainers here would send them in vain.
Reply readiness(const Server& server) {
  std::string missing;
  for (const auto& feed : server.feeds()) {
    switch (feed->state()) {
      case FeedState::serving: break;
      case FeedState::starting:
        missing += "feed " + feed->name() + ": its first batches are being assembled\n";
        break;
      case FeedState::failed:
        missing += "feed " + feed->name() + ": failed: " + feed->failure()->message + "\n";
        break;
    }
  }
  if (missing.empty()) return {200, kText, "ready\n"};
  return {503, kText, "not ready\n" + missing};
}

}  // namespace

Routes make_routes(boost::asio::io_context& loop, std::function<StatsSource()> figures,
                   Server& server) {
  // One text for both paths: who goes from one to the other sees nothing go back.
  const auto stats = std::make_shared<KeptText>([figures] { return render_stats(figures()); });
  const auto metrics = std::make_shared<KeptText>(
      [figures = std::move(figures)] { return render_metrics(figures()); });
  Routes routes;
  routes.pages["/stats"] = [stats] { return Reply{200, "application/json", stats->text()}; };
  routes.live["/live"] = [stats] { return stats->text(); };
  routes.pages["/metrics"] = [metrics] { return Reply{200, kMetricsType, metrics->text()}; };
  routes.pages["/"] = [] { return dashboard_page(); };
  routes.pages["/healthz"] = [] { return Reply{200, kText, "ok\n"}; };
  routes.pages["/readyz"] = [&server] { return readiness(server); };
  routes.later["/feeds/NAME/plan"] = [pages = std::make_shared<PlanPages>(loop, server)](
                                         const Target& target, PlanPages::Answer answer) {
    pages->answer(target, std::move(answer));
  };
  return routes;
}

}  // namespace batchwright
