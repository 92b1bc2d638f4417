#include "daemon/planning/report_json.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace batchwright {
namespace {

namespace json = boost::json;

json::array bars_json(const std::vector<HistogramBar>& bars) {
  json::array all;
  for (const HistogramBar& bar : bars) {
    all.push_back(json::object{{"from", bar.from}, {"width", bar.width}, {"count", bar.count}});
  }
  return all;
}

}  // namespace

void add_counts(json::object& figures, const PlanCounts& counts) {
  figures["left_out"] = counts.left_out;
  if (counts.cut_by_padding) figures["cut_by_padding"] = *counts.cut_by_padding;
  figures["kept"] = counts.kept;
  figures["selected"] = counts.selected;
}

void add_size(json::object& figures, const PlanReport& report) {
  figures["rows"] = report.rows;
  figures["batches"] = report.batches;
  figures["steps"] = report.steps;
}

void add_padding(json::object& figures, const PlanReport& report) {
  figures["frames"] = report.frames;
  figures["padded_frames"] = report.padded_frames;
  figures["zpr"] = report.zpr;
  figures["abl"] = report.abl;
  figures["padded_share"] = report.padded_share;
  figures["apr"] = report.apr;
  figures["apr_deviation"] = report.apr_deviation;
}

void add_extremes(json::object& figures, const PlanReport& report) {
  figures["largest_batch_frames"] = report.largest_batch_frames;
  figures["largest_batch_rows"] = report.largest_batch_rows;
  figures["rank_imbalance"] = report.rank_imbalance;
}

void add_usage(json::object& figures, const DataUsage& usage) {
  figures["dur"] = usage.so_far;
  figures["dur_epoch"] = usage.epoch;
  figures["dur_all"] = usage.all;
  figures["sweep_parameter"] = usage.parameter;
}

void add_histograms(json::object& figures, const PlanHistograms& histograms) {
  figures["batch_size_histogram"] = bars_json(histograms.batch_sizes);
  figures["length_histogram"] = bars_json(histograms.lengths);
}

}  // namespace batchwright
