#include <memory>
#include <utility>

#include "daemon/pages/readiness.h"
#include "daemon/pages/routes.h"

// Of a minimal build: what machines ask for.

namespace batchwright {

Routes make_routes(boost::asio::io_context& /*loop*/, std::function<StatsSource()> figures,
                   Server& server, std::function<std::vector<std::string>()> gone) {
  const auto metrics = std::make_shared<CachedResponse>(
      [figures = std::move(figures)] { return render_metrics(figures()); });
  Routes routes;
  routes.pages["/metrics"] = [metrics] { return Reply{200, kMetricsType, metrics->text()}; };
  routes.pages["/healthz"] = [] { return Reply{200, kPlainText, "ok\n"}; };
  // Among those that take a query.
  routes.later["/readyz"] = [&server, gone = std::move(gone)](
                                const Target& target, const std::function<void(Reply)>& answer) {
    answer(readiness(server.status(WaitingTimes::Time::clock::now()), gone(), target));
  };
  return routes;
}

}  // namespace batchwright
