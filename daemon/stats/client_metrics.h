#pragma once

#include <vector>

#include "daemon/stats/metrics_page.h"
#include "daemon/stats/report.h"

namespace batchwright {

/// The part of /metrics that has a line for each subscription.
void add_client_metrics(MetricsPage& page, const std::vector<FeedStatus>& feeds);

}  // namespace batchwright
