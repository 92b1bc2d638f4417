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

json::array bars_json(const std::vector<HistogramBar>& bars) {
  json::array all;
  for (const HistogramBar& bar : bars) {
    all.push_back(json::object{{"from", bar.from}, {"width", bar.width}, {"count", bar.count}});
  }
  return all;
}

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

void add_report(json::object& page, const PlanReport& report) {
  page["sequences"] = report.sequences;
  page["rows"] = report.rows;
  page["batches"] = report.batches;
  page["steps"] = report.steps;
  page["frames"] = report.frames;
  page["padded_frames"] = report.padded_frames;
  page["zpr"] = report.zpr;
  page["abl"] = report.abl;
  page["padded_share"] = report.padded_share;
  page["apr"] = report.apr;
  page["apr_deviation"] = report.apr_deviation;
  page["largest_batch_frames"] = report.largest_batch_frames;
  page["largest_batch_rows"] = report.largest_batch_rows;
  page["rank_imbalance"] = report.rank_imbalance;
}

void add_usage(json::object& page, const DataUsage& usage) {
  page["dur"] = usage.so_far;
  page["dur_epoch"] = usage.epoch;
  page["dur_all"] = usage.all;
  page["sweep_parameter"] = usage.parameter;
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
  const PlanCounts counts = plan.counts();
  json::object page{{"feed", question.feed},
                    {"epoch", question.epoch.value},
                    {"fingerprint", to_string(source->fingerprint)},
                    {"left_out", counts.left_out},
                    {"kept", counts.kept},
                    {"selected", counts.selected},
                    {"world", plan.world()},
                    {"seconds", seconds}};
  add_report(page, report_plan(plan));
  add_usage(page, *usage);
  const PlanHistograms histograms = plan_histograms(plan, kMostBars);
  page["batch_size_histogram"] = bars_json(histograms.batch_sizes);
  page["length_histogram"] = bars_json(histograms.lengths);
  page["length_order"] = length_order(plan);
  return json::serialize(page);
}

}  // namespace batchwright
