#include "daemon/pages/routes.h"

#include <memory>
#include <string>
#include <utility>

#include "daemon/pages/plan_pages.h"
#include "daemon/pages/readiness.h"

namespace batchwright {
Routes make_routes(boost::asio::io_context& loop, std::function<StatsSource()> figures,
                   Server& server, std::function<std::vector<std::string>()> gone) {
  // One text for both paths: a reader that changes from one to the other never sees a figure
  // decrease.
  const auto stats =
      std::make_shared<CachedResponse>([figures] { return render_stats(figures()); });
  const auto history =
      std::make_shared<CachedResponse>([figures] { return render_history(figures()); });
  const auto metrics = std::make_shared<CachedResponse>(
      [figures = std::move(figures)] { return render_metrics(figures()); });
  Routes routes;
  routes.pages["/stats"] = [stats] { return Reply{200, "application/json", stats->text()}; };
  routes.pages["/history"] = [history] { return Reply{200, "application/json", history->text()}; };
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
  // Among those that take a query.
  routes.later["/readyz"] = [&server, gone = std::move(gone)](
                                const Target& target, const std::function<void(Reply)>& answer) {
    answer(readiness(server.status(WaitingTimes::Time::clock::now(), Detail::without_clients),
                     gone(), target));
  };
  // Later, since a plan may take seconds, which the loop does not have.
  routes.later["/feeds/NAME/plan"] = [pages = std::make_shared<PlanPages>(loop, server)](
                                         const Target& target, PlanPages::Answer answer) {
    pages->answer(target, std::move(answer));
  };
  return routes;
}

}  // namespace batchwright
