#include "daemon/planning/stages/cut.h"

#include <fmt/core.h>

#include <limits>
#include <string>

namespace batchwright {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
/// Rows times longest are counted up to here (README.md, "Limits").
constexpr std::uint64_t kMostFrames = std::uint64_t{1} << 62;

std::uint64_t padded_frames(const PlanSettings& settings, std::uint32_t longest) {
  if (settings.cut == Cut::dynamic) return std::uint64_t{settings.size} * longest;
  if (settings.cut != Cut::real_frames) return settings.max_frames;
  if (settings.max_padded != 0) return settings.max_padded;
  return settings.max_frames > kMostFrames / 4 ? kMostFrames : 4 * settings.max_frames;
}

}  // namespace

Capacity::Capacity(const PlanSettings& settings, std::uint32_t longest)
    : cut_(settings.cut),
      overruns_(settings.rule == CutRule::overrun && settings.cut != Cut::fixed),
      longest_(on_grid(settings, longest)),
      budget_(padded_frames(settings, longest_)),
      real_frames_(settings.cut == Cut::real_frames ? settings.max_frames : kNoLimit),
      quadratic_scale_(std::max(settings.quadratic_scale, std::uint32_t{1})),
      multiple_(settings.size_multiple),
      most_rows_(settings.max_size == 0 ? std::numeric_limits<std::uint32_t>::max()
                                        : settings.max_size) {
  // Its size is its limit, too; settings_check.cpp has compared it with max_size.
  if (cut_ == Cut::fixed) most_rows_ = settings.size;
}

std::uint64_t Capacity::rows_within(std::uint32_t longest) const {
  // Whole-number divisions, as DEFINITIONS.md has them: the second planner must get the same rows.
  const std::uint64_t frames = longest;
  switch (cut_) {
    case Cut::fixed: return most_rows_;
    case Cut::dynamic:
    case Cut::frames:
    case Cut::real_frames: return budget_ / frames;
    case Cut::quadratic: return budget_ / (frames + frames * frames / quadratic_scale_);
    case Cut::file: return kNoLimit;
  }
  return 0;
}

std::uint64_t Capacity::full_rows(std::uint32_t longest) const {
  const std::uint64_t within = std::min(rows_within(longest), real_frames_ / longest);
  std::uint64_t rows = within + (overruns_ ? 1 : 0);
  if (!overruns_padded()) rows = std::min(rows, rows_within(longest));
  return rounded(std::min(rows, most_rows_));
}

bool Capacity::is_full(std::uint64_t rows, std::uint32_t longest, std::uint64_t frames) const {
  if (cut_ != Cut::real_frames) return rows >= full_rows(longest);
  const std::uint64_t more = rows < multiple_ ? 1 : multiple_;
  if (rows + more > std::min(rows_within(longest), most_rows_)) return true;
  return overruns_ ? frames > real_frames_ : frames + more * longest > real_frames_;
}

std::uint64_t Capacity::rounded(std::uint64_t rows) const {
  return rows < multiple_ ? rows : rows - rows % multiple_;
}

Result<void> check_capacity(const PlanBuilder& builder, const PlanSettings& settings) {
  const Capacity capacity(settings, builder.longest);
  const auto fits_alone = [&](std::uint32_t row) {
    const std::uint32_t length = on_grid(settings, row);
    return capacity.rows_within(length) >= 1 && length <= capacity.real_frames();
  };
  if (fits_alone(builder.longest)) return {};
  std::uint32_t fits = builder.longest;  // longest length within the capacity, by bisection
  for (std::uint32_t low = 0; low < fits;) {
    const std::uint32_t middle = low + (fits - low) / 2;
    if (fits_alone(middle + 1)) {
      low = middle + 1;
    } else {
      fits = middle;
    }
  }
  std::uint64_t too_long = 0;
  if (const OrderRows* const listed = builder.table.listed(); listed != nullptr) {
    builder.each_item([&](std::uint32_t, std::uint32_t, std::uint32_t length) {
      too_long += length > fits ? 1 : 0;
    });
    return Error{ErrorCode::infeasible,
                 fmt::format("{} of {} rows of order file {} exceed max_frames = {}, the longest "
                             "with {} frames",
                             too_long, listed->rows.size(), listed->file, settings.max_frames,
                             builder.longest)};
  }
  for (const std::uint32_t length : builder.table.sequence_lengths()) {
    const bool kept = length >= settings.min_length &&
                      (settings.max_length == 0 || length <= settings.max_length);
    too_long += kept && length > fits ? 1 : 0;
  }
  return Error{ErrorCode::infeasible,
               fmt::format("{} of {} sequences exceed max_frames = {}, the longest with {} "
                           "frames; max_length = {} would leave them out",
                           too_long, builder.kept, settings.max_frames, builder.longest, fits)};
}

namespace {

/// Cuts the order bucket by bucket. Packing follows behind reading, so that both use one memory.
class Cutter {
 public:
  Cutter(PlanBuilder& builder, const PlanSettings& settings)
      : draft_(builder),
        settings_(settings),
        capacity_(settings, builder.longest),
        drops_(settings.last == LastBatch::drop),
        grouped_(settings.shuffle == Shuffle::groups) {
    // At most so many batches: a vector that grows takes three times as much for a moment.
    const std::size_t rows = builder.order.size();
    const std::size_t batches =
        rows / capacity_.least_full_rows() + std::size_t{2} * builder.used_buckets;
    builder.starts.reserve(std::min(batches, rows) + 1);
    if (grouped_) builder.batch_lengths.reserve(std::min(batches, rows));
  }

  void cut(std::size_t start, std::size_t end) {
    while (start < end) {
      const Batch batch = batch_at(start, end);
      const bool at_end = start + batch.rows == end;
      // Fewer rows than its own longest would allow: the bucket's end cut it off.
      const bool full = capacity_.is_full(batch.rows, batch.longest, batch.frames);
      if (drops_ && at_end && !full) return;
      by_padding_ += batch.by_padding ? 1 : 0;
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
    if (capacity_.counts_real_frames()) draft_.cut_by_padding = by_padding_;
  }

 private:
  struct Batch {
    std::size_t rows = 0;
    std::uint32_t longest = 0;
    std::uint64_t frames = 0;  ///< Sum of the rows' lengths, as all of these on the grid.
    bool by_padding = false;   ///< max_padded ended it, and not max_frames.
  };

  /// The batch that begins at `start`.
  Batch batch_at(std::size_t start, std::size_t end) const {
    const std::size_t most = std::min<std::size_t>(end - start, capacity_.most_rows());
    std::uint64_t within = 0;
    Batch batch;
    while (batch.rows < most) {
      const std::uint32_t length = length_at(start + batch.rows);
      // The capacity depends on the longest alone, so a shorter row needs no division.
      const std::uint64_t allowed = length > batch.longest ? capacity_.rows_within(length) : within;
      const bool passes_padded = batch.rows + 1 > allowed;
      const bool passes_real = batch.frames + length > capacity_.real_frames();
      batch.by_padding = passes_padded && !passes_real;
      if (passes_padded && !capacity_.overruns_padded()) break;
      if (passes_real && !capacity_.overruns()) break;
      within = allowed;
      add(batch, length);
      if (passes_padded || passes_real) break;
    }
    const std::size_t rounded = capacity_.rounded(batch.rows);
    // The rows that are given back may have held the longest one.
    return rounded < batch.rows ? shortened(start, rounded, batch.by_padding) : batch;
  }

  static void add(Batch& batch, std::uint32_t length) {
    ++batch.rows;
    batch.longest = std::max(batch.longest, length);
    batch.frames += length;
  }

  Batch shortened(std::size_t start, std::size_t rows, bool by_padding) const {
    Batch batch;
    batch.by_padding = by_padding;
    for (std::size_t i = 0; i < rows; ++i) add(batch, length_at(start + i));
    return batch;
  }

  std::uint32_t length_at(std::size_t place) const {
    return on_grid(settings_, key_of(draft_.order.word(place)));
  }

  PlanBuilder& draft_;
  const PlanSettings& settings_;
  Capacity capacity_;
  bool drops_, grouped_;
  std::size_t packed_ = 0;
  std::uint64_t by_padding_ = 0;
};

/// A line of the order file is a batch.
void cut_as_listed(PlanBuilder& builder) {
  const std::size_t rows = builder.order.size();
  for (std::size_t i = 0; i < rows; ++i) builder.order.pack(i, item_of(builder.order.word(i)));
  builder.order.finish_packing(rows);
  builder.starts = builder.table.listed()->line_starts;
}

}  // namespace

Result<void> cut_batches(PlanBuilder& builder, const PlanSettings& settings) {
  if (settings.cut == Cut::file) {
    cut_as_listed(builder);
    return {};
  }
  const std::size_t rows = builder.order.size();
  Cutter cutter(builder, settings);
  for (std::size_t start = 0; start < rows;) {
    const std::size_t end = builder.bucket_end(start);
    cutter.cut(start, end);
    start = end;
  }
  cutter.finish();
  if (builder.batches() > 0) return {};
  return Error{
      ErrorCode::infeasible,
      fmt::format("{} rows fill no batch and last = drop: use keep, or a smaller batch", rows)};
}

}  // namespace batchwright
