#pragma once

#include "daemon/planning/stages/plan_builder.h"

namespace batchwright {

/// The number of rows that a batch may have, given its longest. Lengths are those of rows on the
/// grid of length_multiple.
class Capacity {
 public:
  /// `longest` is L_max, of all items an epoch may use, and need not be on the grid.
  Capacity(const PlanSettings& settings, std::uint32_t longest);

  /// The most rows of length `longest` that stay within the capacity, for real_frames within
  /// max_padded; max_size is not in it.
  std::uint64_t rows_within(std::uint32_t longest) const;
  /// The rows of a batch that nothing but its own longest row limits, or that are all as long.
  std::uint64_t full_rows(std::uint32_t longest) const;
  /// Those of a batch whose longest row is L_max: no full one has fewer.
  std::uint64_t least_full_rows() const { return full_rows(longest_); }
  /// No batch has more.
  std::uint64_t most_rows() const { return most_rows_; }
  /// Whether the row that passes the capacity belongs to the batch. With real frames it is their
  /// sum that may be passed, and the padded frames never.
  bool overruns() const { return overruns_; }
  bool overruns_padded() const { return overruns_ && !counts_real_frames(); }
  bool counts_real_frames() const { return cut_ == Cut::real_frames; }
  /// The most frames of rows, without padding; no limit for other cuts than real_frames.
  std::uint64_t real_frames() const { return real_frames_; }
  /// Whether a batch that ends with its bucket is as full as one of rows like its longest would be.
  bool is_full(std::uint64_t rows, std::uint32_t longest, std::uint64_t frames) const;
  /// Down to size_multiple, unless nothing would be left.
  std::uint64_t rounded(std::uint64_t rows) const;

 private:
  Cut cut_;
  bool overruns_;
  std::uint32_t longest_;  ///< L_max, on the grid.
  std::uint64_t budget_;
  std::uint64_t real_frames_;
  std::uint64_t quadratic_scale_;
  std::uint64_t multiple_;
  std::uint64_t most_rows_;
};

/// A sequence that exceeds the capacity on its own is infeasible: says which and how many.
Result<void> check_capacity(const PlanBuilder& builder, const PlanSettings& settings);

/// Cuts builder.order into batches and packs it: fills builder.starts. Items of dropped batches are
/// removed.
/// Errors: infeasible, when no batch is left.
Result<void> cut_batches(PlanBuilder& builder, const PlanSettings& settings);

}  // namespace batchwright
