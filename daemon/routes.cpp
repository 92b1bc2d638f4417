#include "daemon/routes.h"

#include <utility>

namespace batchwright {

Routes make_routes(std::function<StatsSource()> figures, Server& /*server*/) {
  Routes routes;
  routes.pages["/stats"] = [figures = std::move(figures)] {
    return Reply{200, "application/json", render_stats(figures())};
  };
  routes.pages["/healthz"] = [] { return Reply{200, "text/plain; charset=utf-8", "ok\n"}; };
  return routes;
}

}  // namespace batchwright
