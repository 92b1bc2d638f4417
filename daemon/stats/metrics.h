#pragma once

#include <string>

#include "daemon/stats/report.h"

namespace batchwright {

/// The type of the page below, for the header of the answer.
inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

/// The page /metrics: Prometheus' text format 0.0.4 as README.md of this room describes it. Every
/// metric is there from the start; those of feeds and subscribers have a line for each.
std::string render_metrics(const StatsSource& source);

}  // namespace batchwright
