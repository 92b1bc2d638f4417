#pragma once

#include <boost/json/fwd.hpp>
#include <vector>

#include "daemon/planning/plan.h"
#include "daemon/planning/report.h"

namespace batchwright {

// A plan's figures under their names in JSON, the same in `batchwright plan --json` and on the page
// /feeds/NAME/plan. Each call adds its members behind those that are there.

/// left_out, kept, selected.
void add_counts(boost::json::object& figures, const PlanCounts& counts);
/// rows, batches, steps.
void add_size(boost::json::object& figures, const PlanReport& report);
/// frames, padded_frames, zpr, abl, padded_share, apr, apr_deviation.
void add_padding(boost::json::object& figures, const PlanReport& report);
/// largest_batch_frames, largest_batch_rows, rank_imbalance.
void add_extremes(boost::json::object& figures, const PlanReport& report);
/// dur, dur_epoch, dur_all, sweep_parameter.
void add_usage(boost::json::object& figures, const DataUsage& usage);
/// batch_size_histogram, length_histogram: lists of bars with from, width and count.
void add_histograms(boost::json::object& figures, const PlanHistograms& histograms);

}  // namespace batchwright
