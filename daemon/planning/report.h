#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "daemon/planning/plan.h"

namespace batchwright {

/// The figures of a plan, as the papers measure them. Rates are fractions of one.
struct PlanReport {
  std::uint64_t batches = 0;
  std::uint64_t steps = 0;
  std::uint64_t sequences = 0;  ///< Different ones that at least a part is delivered of.
  std::uint64_t rows = 0;
  std::uint64_t frames = 0;         ///< Sum of lengths.
  std::uint64_t padded_frames = 0;  ///< Sum of B * L.
  double zpr = 0;                   ///< Zero-padding rate: mean over batches weighted by B.
  double abl = 0;                   ///< Average batch length: mean of L weighted by B.
  double padded_share = 0;          ///< Share of padding among all frames delivered.
  double apr = 0;                   ///< Average padding ratio: mean over batches of 1 - S / (B L).
  double apr_deviation = 0;         ///< Standard deviation of the same.
  std::uint64_t largest_batch_frames = 0;
  std::uint32_t largest_batch_rows = 0;
  std::uint64_t slowest_frames = 0;  ///< Sum over steps of the largest rank's padded frames.
  double rank_imbalance = 1;  ///< Mean over steps of largest / mean padded frames across ranks.
};

/// Cost: O(rows) time, one bit a sequence.
PlanReport report_plan(const EpochPlan& plan);

/// Frames, at most, of the sequences of which a part was delivered and another one follows: what
/// making each of them once would keep. `lengths`: those that the plan was made of. Cost: O(rows)
/// time, some 40 bytes a sequence that has parts.
std::uint64_t most_open_frames(const EpochPlan& plan, std::span<const std::uint32_t> lengths);

/// Values from `from` up to, without it, `from + width` occur `count` times.
struct HistogramBar {
  std::uint64_t from = 0, width = 0, count = 0;
};

struct PlanHistograms {
  std::vector<HistogramBar> batch_sizes;  ///< Rows of each batch.
  std::vector<HistogramBar> lengths;      ///< Frames of each row.
};

/// Histograms of at most `bars` bars of equal width. Cost: O(rows).
PlanHistograms plan_histograms(const EpochPlan& plan, std::uint32_t bars);

/// How likely two sequences that shared a batch share one again in the next epoch. A sequence
/// counts as of the batch it begins in.
struct Randomness {
  double shared_again = 0;      ///< Measured; 0 when no two sequences shared a batch.
  double shared_by_chance = 0;  ///< The same for batches of the same sizes, filled at random.
  /// chance / measured, at most 1: 1 is a random order, 0 the same batches forever.
  double figure() const;
};

/// Cost: O(rows) time, 4 bytes a sequence. Both plans are of the same lengths.
Randomness measure_randomness(const EpochPlan& plan, const EpochPlan& next);

}  // namespace batchwright
