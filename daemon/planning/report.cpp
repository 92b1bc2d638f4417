#include "daemon/planning/report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace batchwright {
namespace {

/// Sums over batches that the report is made of.
class Sums {
 public:
  void add(const BatchFigures& batch) {
    const std::uint64_t padded = std::uint64_t{batch.rows} * batch.batch_length;
    const double ratio =
        padded == 0 ? 0 : 1 - static_cast<double>(batch.frames) / static_cast<double>(padded);
    ++report_.batches;
    report_.rows += batch.rows;
    report_.frames += batch.frames;
    report_.padded_frames += padded;
    report_.largest_batch_frames = std::max(report_.largest_batch_frames, padded);
    report_.largest_batch_rows = std::max(report_.largest_batch_rows, batch.rows);
    weighted_ratio_ += batch.rows * ratio;
    const double delta = ratio - report_.apr;  // Welford: stable where all ratios are alike
    report_.apr += delta / static_cast<double>(report_.batches);
    squares_ += delta * (ratio - report_.apr);
    step_padded_ += padded;
    step_largest_ = std::max(step_largest_, padded);
  }

  void end_step(std::uint32_t world) {
    // The slowest rank's frames as a multiple of the mean: what the others wait for.
    if (step_padded_ != 0) {
      imbalance_ += static_cast<double>(step_largest_) * world / static_cast<double>(step_padded_);
    }
    report_.slowest_frames += step_largest_;
    ++report_.steps;
    step_padded_ = step_largest_ = 0;
  }

  PlanReport finish() {
    if (report_.batches == 0) return report_;
    const auto rows = static_cast<double>(report_.rows);
    const auto padded = static_cast<double>(report_.padded_frames);
    report_.zpr = weighted_ratio_ / rows;
    report_.abl = padded / rows;
    report_.padded_share = 1 - static_cast<double>(report_.frames) / padded;
    report_.apr_deviation = std::sqrt(squares_ / static_cast<double>(report_.batches));
    report_.rank_imbalance = imbalance_ / static_cast<double>(report_.steps);
    return report_;
  }

 private:
  PlanReport report_;
  double weighted_ratio_ = 0, squares_ = 0, imbalance_ = 0;
  std::uint64_t step_padded_ = 0, step_largest_ = 0;
};

/// Bars of equal width over the values in [least, most].
class Bars {
 public:
  Bars(std::uint64_t least, std::uint64_t most, std::uint32_t bars)
      : least_(least), width_((most - least) / bars + 1), counts_((most - least) / width_ + 1) {}

  void add(std::uint64_t value) { ++counts_[(value - least_) / width_]; }

  std::vector<HistogramBar> finish() const {
    std::vector<HistogramBar> bars;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      bars.push_back({least_ + i * width_, width_, counts_[i]});
    }
    return bars;
  }

 private:
  std::uint64_t least_, width_;
  std::vector<std::uint64_t> counts_;
};

struct Range {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most = 0;
  void add(std::uint64_t value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

/// Calls `use(rows)` with the rows of each batch.
template <class Use>
void each_batch(const EpochPlan& plan, const Use& use) {
  std::vector<Row> rows;
  for (std::uint64_t index = 0; index < plan.batches(); ++index) {
    plan.rows(BatchIndex{index}, rows);
    use(rows);
  }
}

}  // namespace

PlanHistograms plan_histograms(const EpochPlan& plan, std::uint32_t bars) {
  // Two passes over the plan: the bars' width follows from the ranges, and keeping all values would
  // take memory for each row.
  Range sizes;
  Range lengths;
  each_batch(plan, [&](const std::vector<Row>& rows) {
    sizes.add(rows.size());
    for (const Row& row : rows) lengths.add(row.length);
  });
  Bars size_bars(sizes.least, sizes.most, bars);
  Bars length_bars(lengths.least, lengths.most, bars);
  each_batch(plan, [&](const std::vector<Row>& rows) {
    size_bars.add(rows.size());
    for (const Row& row : rows) length_bars.add(row.length);
  });
  return {size_bars.finish(), length_bars.finish()};
}

PlanReport report_plan(const EpochPlan& plan) {
  Sums sums;
  std::vector<bool> seen;
  std::uint64_t sequences = 0;
  std::uint64_t batches = 0;
  each_batch(plan, [&](const std::vector<Row>& rows) {
    BatchFigures figures;
    for (const Row& row : rows) {
      ++figures.rows;
      figures.batch_length = std::max(figures.batch_length, row.length);
      figures.frames += row.length;
      if (row.length == 0) continue;  // a lane that ran out
      // Doubled, for ordinals come in any order: growing one by one would copy the bits each time.
      if (row.ordinal >= seen.size()) seen.resize(row.ordinal * 2 + 64);
      sequences += seen[row.ordinal] ? 0 : 1;
      seen[row.ordinal] = true;
    }
    figures.batch_length = plan.padded_length(figures.batch_length);
    sums.add(figures);
    if (++batches % plan.world() == 0) sums.end_step(plan.world());
  });
  PlanReport report = sums.finish();
  report.sequences = sequences;
  return report;
}

std::uint64_t most_open_frames(const EpochPlan& plan, std::span<const std::uint32_t> lengths) {
  const auto is_part = [](const Row& row) {
    return row.length != 0 && row.flags != (kRowReset | kRowLast);
  };
  // A sequence that an epoch has several times is another one each time.
  const auto key_of_row = [](const Row& row) { return row.ordinal << 32 | row.use; };
  std::unordered_map<std::uint64_t, std::uint64_t> last_batch;
  std::vector<Row> rows;
  for (std::uint64_t index = 0; index < plan.batches(); ++index) {
    plan.rows(BatchIndex{index}, rows);
    for (const Row& row : rows) {
      if (is_part(row)) last_batch[key_of_row(row)] = index;
    }
  }
  std::unordered_set<std::uint64_t> begun;
  std::uint64_t open = 0;
  std::uint64_t most = 0;
  for (std::uint64_t index = 0; index < plan.batches(); ++index) {
    plan.rows(BatchIndex{index}, rows);
    for (const Row& row : rows) {
      if (is_part(row) && begun.insert(key_of_row(row)).second) open += lengths[row.ordinal];
    }
    most = std::max(most, open);
    for (const Row& row : rows) {
      const auto last = is_part(row) ? last_batch.find(key_of_row(row)) : last_batch.end();
      if (last == last_batch.end() || last->second != index) continue;
      open -= lengths[row.ordinal];
      last_batch.erase(last);  // two chunks of a batch may be of one sequence
    }
  }
  return most;
}

}  // namespace batchwright
