#include "daemon/planning/cut.h"

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
  if (cut_ == Cut::fixed) most_rows_ = settings.size;
}

std::uint64_t Capacity::rows_within(std::uint32_t longest) const {
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
               std::to_string(too_long) + " of " + std::to_string(draft.kept) +
                   " sequences alone pass max_frames = " + std::to_string(settings.max_frames) +
                   ", the longest with " + std::to_string(draft.longest) +
                   " frames; max_length = " + std::to_string(fits) + " would leave them out"};
}

namespace {

/// Rows of the batch that begins at `items[0]`.
std::uint64_t batch_rows(const ItemTable& table, std::span<const std::uint32_t> items,
                         const Capacity& capacity, std::uint32_t& longest) {
  const std::uint64_t most = std::min<std::uint64_t>(items.size(), capacity.most_rows());
  std::uint64_t within = 0;
  std::uint64_t rows = 0;
  longest = 0;
  for (; rows < most; ++rows) {
    const std::uint32_t length = table.length(items[rows]);
    if (length > longest) within = capacity.rows_within(length);
    if (rows + 1 > within && !capacity.overruns()) break;
    longest = std::max(longest, length);
    if (rows + 1 > within) {  // the one that passes the capacity
      ++rows;
      break;
    }
  }
  return capacity.rounded(rows);
}

/// Cuts one bucket; `kept` is where its remaining items go, at or before its start.
class Cutter {
 public:
  Cutter(Draft& draft, const PlanSettings& settings)
      : draft_(draft),
        capacity_(settings, draft.longest),
        drop_(settings.last == LastBatch::drop) {}

  void cut(std::size_t start, std::size_t end) {
    while (start < end) {
      const std::span<const std::uint32_t> rest(&draft_.items[start], end - start);
      std::uint32_t longest = 0;
      const std::uint64_t rows = batch_rows(draft_.table, rest, capacity_, longest);
      const bool is_short = rows == rest.size() && rows < capacity_.full_rows(longest);
      if (is_short && drop_) return;
      draft_.starts.push_back(static_cast<std::uint32_t>(kept_));
      if (kept_ != start) {
        std::copy_n(rest.begin(), rows, draft_.items.begin() + static_cast<std::ptrdiff_t>(kept_));
      }
      kept_ += rows;
      start += rows;
    }
  }

  void finish() {
    draft_.items.resize(kept_);
    draft_.starts.push_back(static_cast<std::uint32_t>(kept_));
  }

 private:
  Draft& draft_;
  Capacity capacity_;
  bool drop_;
  std::size_t kept_ = 0;
};

}  // namespace

Result<void> cut_batches(Draft& draft, const PlanSettings& settings) {
  Cutter cutter(draft, settings);
  if (draft.bucket_ends.empty())
    draft.bucket_ends = {static_cast<std::uint32_t>(draft.items.size())};
  std::size_t start = 0;
  const std::vector<std::uint32_t> ends = std::move(draft.bucket_ends);
  for (const std::uint32_t end : ends) {
    cutter.cut(start, end);
    start = end;
  }
  cutter.finish();
  if (draft.batches() > 0) return {};
  return Error{ErrorCode::infeasible, std::to_string(start) +
                                          " sequences fill no batch and last = drop: use keep, "
                                          "or a smaller batch"};
}

}  // namespace batchwright
