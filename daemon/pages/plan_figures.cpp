#include "daemon/pages/plan_figures.h"

#include <boost/json.hpp>
#include <chrono>
#include <utility>
#include <vector>

namespace batchwright {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kMostPoints = 2000;  ///< Points of the length order.
constexpr std::uint32_t kMostBars = 40;      ///< Bars of a histogram.

/// Batches in the order they are delivered, thinned evenly: [index, longest length, rows].
json::array length_order(const EpochPlan& plan) {
  // Rounded up, so that there are never more than kMostPoints.
  const std::uint64_t every = (plan.batches() + kMostPoints - 1) / kMostPoints;
  json::array points;
  for (std::uint64_t index = 0; index < plan.batches(); index += every) {
    const BatchFigures batch = plan.figures(BatchIndex{index});
    points.push_back(json::array{index, batch.batch_length, batch.rows});
  }
  return points;
}

}  // namespace

Result<std::string> plan_figures(const PlanQuestion& question) {
  std::shared_ptr<const EpochSource> source = question.planned;
  // null where the feed has the plan already: nothing is timed here.
  json::value seconds = nullptr;
  if (!source) {
    const auto begin = std::chrono::steady_clock::now();
    auto planned = plan_snapshot(question.snapshot, question.settings, question.epoch);
    if (!planned) return planned.error();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    source = planned->source;
  }
  const auto usage = data_usage(question.settings.plan, question.epoch);
  if (!usage) return usage.error();
  const EpochPlan& plan = source->plan;
  const PlanReport report = report_plan(plan);
  json::object page{{"feed", question.feed},
                    {"epoch", question.epoch.value},
                    {"fingerprint", to_string(source->fingerprint)}};
  add_counts(page, plan.counts());
  page["world"] = plan.world();
  page["seconds"] = seconds;
  page["sequences"] = report.sequences;
  add_size(page, report);
  add_padding(page, report);
  add_extremes(page, report);
  add_usage(page, *usage);
  add_histograms(page, plan_histograms(plan, kMostBars));
  page["length_order"] = length_order(plan);
  return json::serialize(page);
}

}  // namespace batchwright
