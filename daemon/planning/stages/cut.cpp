#include "daemon/planning/stages/cut.h"

#include <fmt/core.h>

#include <limits>
#include <string>

namespace batchwright {

Capacity::Capacity(const PlanSettings& settings, std::uint32_t longest)
    : cut_(settings.cut),
      overruns_(settings.rule == CutRule::overrun && settings.cut != Cut::fixed),
      budget_(settings.cut == Cut::dynamic ? std::uint64_t{settings.size} * longest
                                           : settings.max_frames),
      quadratic_scale_(std::max(settings.quadratic_scale, std::uint32_t{1})),
      multiple_(settings.size_multiple),
      most_rows_(settings.max_size == 0 ? std::numeric_limits<std::uint32_t>::max()
                                        : settings.max_size) {
  // Its size is its limit, too; settings_check.cpp has compared it with max_size.
  if (cut_ == Cut::fixed) most_rows_ = settings.size;
}

std::uint64_t Capacity::rows_within(std::uint32_t longest) const {
  // Whole-number divisions, as README.md has them: the second planner must come to the same rows.
  const std::uint64_t frames = longest;
  switch (cut_) {
    case Cut::fixed: return most_rows_;
    case Cut::dynamic:
    case Cut::frames: return budget_ / frames;
    case Cut::quadratic: return budget_ / (frames + frames * frames / quadratic_scale_);
  }
  return 0;
}

std::uint64_t Capacity::full_rows(std::uint32_t longest) const {
  const std::uint64_t rows = rows_within(longest) + (overruns_ ? 1 : 0);
  return rounded(std::min(rows, most_rows_));
}

std::uint64_t Capacity::rounded(std::uint64_t rows) const {
  return rows < multiple_ ? rows : rows - rows % multiple_;
}

Result<void> check_capacity(const Draft& draft, const PlanSettings& settings) {
  const Capacity capacity(settings, draft.longest);
  if (capacity.rows_within(draft.longest) >= 1) return {};
  std::uint32_t fits = draft.longest;  // longest length within the capacity, by bisection
  for (std::uint32_t low = 0; low < fits;) {
    const std::uint32_t middle = low + (fits - low) / 2;
    if (capacity.rows_within(middle + 1) >= 1) {
      low = middle + 1;
    } else {
      fits = middle;
    }
  }
  std::uint64_t too_long = 0;
  for (const std::uint32_t length : draft.table.sequence_lengths()) {
    const bool kept = length >= settings.min_length &&
                      (settings.max_length == 0 || length <= settings.max_length);
    too_long += kept && length > fits ? 1 : 0;
  }
  return Error{ErrorCode::infeasible,
               fmt::format("{} of {} sequences alone pass max_frames = {}, the longest with {} "
                           "frames; max_length = {} would leave them out",
                           too_long, draft.kept, settings.max_frames, draft.longest, fits)};
}

namespace {

/// Cuts the order bucket by bucket. Packing follows behind reading, so that both use one memory.
class Cutter {
 public:
  Cutter(Draft& draft, const PlanSettings& settings)
      : draft_(draft),
        capacity_(settings, draft.longest),
        drops_(settings.last == LastBatch::drop),
        grouped_(settings.shuffle == Shuffle::groups) {
    // At most so many batches: a vector that grows takes three times as much for a moment.
    const std::size_t rows = draft.order.size();
    const std::size_t batches =
        rows / capacity_.full_rows(draft.longest) + std::size_t{2} * draft.used_buckets;
    draft.starts.reserve(std::min(batches, rows) + 1);
    if (grouped_) draft.batch_lengths.reserve(std::min(batches, rows));
  }

  void cut(std::size_t start, std::size_t end) {
    while (start < end) {
      const Batch batch = batch_at(start, end);
      const bool at_end = start + batch.rows == end;
      // Fewer rows than its own longest would allow: the bucket's end cut it off.
      if (drops_ && at_end && batch.rows < capacity_.full_rows(batch.longest)) return;
      draft_.starts.push_back(static_cast<std::uint32_t>(packed_));
      if (grouped_) draft_.batch_lengths.push_back(batch.longest);
      // Packed to half the bytes behind the place that is read, so it never overtakes.
      for (const std::size_t next = start + batch.rows; start < next; ++start) {
        draft_.order.pack(packed_++, item_of(draft_.order.word(start)));
      }
    }
  }

  void finish() {
    draft_.order.finish_packing(packed_);
    draft_.starts.push_back(static_cast<std::uint32_t>(packed_));
    draft_.starts.shrink_to_fit();
    draft_.batch_lengths.shrink_to_fit();
  }

 private:
  struct Batch {
    std::size_t rows;
    std::uint32_t longest;
  };

  /// The batch that begins at `start`.
  Batch batch_at(std::size_t start, std::size_t end) const {
    const std::size_t most = std::min<std::size_t>(end - start, capacity_.most_rows());
    std::uint64_t within = 0;
    std::uint32_t longest = 0;
    std::size_t rows = 0;
    while (rows < most) {
      const std::uint32_t length = key_of(draft_.order.word(start + rows));
      // The capacity depends on the longest alone, so a shorter row needs no division.
      const std::uint64_t allowed = length > longest ? capacity_.rows_within(length) : within;
      if (rows + 1 > allowed && !capacity_.overruns()) break;
      within = allowed;
      longest = std::max(longest, length);
      if (++rows > within) break;  // the one that passes the capacity
    }
    const std::size_t rounded = capacity_.rounded(rows);
    // The rows that are given back may have held the longest one.
    if (rounded < rows) longest = longest_of(start, rounded);
    return {rounded, longest};
  }

  std::uint32_t longest_of(std::size_t start, std::size_t rows) const {
    std::uint32_t longest = 0;
    for (std::size_t i = start; i < start + rows; ++i) {
      longest = std::max(longest, key_of(draft_.order.word(i)));
    }
    return longest;
  }

  Draft& draft_;
  Capacity capacity_;
  bool drops_, grouped_;
  std::size_t packed_ = 0;
};

}  // namespace

Result<void> cut_batches(Draft& draft, const PlanSettings& settings) {
  const std::size_t rows = draft.order.size();
  Cutter cutter(draft, settings);
  for (std::size_t start = 0; start < rows;) {
    const std::size_t end = draft.bucket_end(start);
    cutter.cut(start, end);
    start = end;
  }
  cutter.finish();
  if (draft.batches() > 0) return {};
  return Error{
      ErrorCode::infeasible,
      fmt::format("{} rows fill no batch and last = drop: use keep, or a smaller batch", rows)};
}

}  // namespace batchwright
