#include <algorithm>
#include <bit>
#include <vector>

#include "daemon/planning/later_epochs.h"
#include "daemon/planning/plan.h"
#include "daemon/planning/stages/cut.h"
#include "daemon/planning/stages/order.h"
#include "daemon/planning/stages/select.h"

// Whatever the order, a batch of r rows is at least as long as the r-th shortest item. So the
// most rows, and the most padded frames, follow from how many items there are of each length.

namespace batchwright {
namespace {

/// As good as no end, and times 2^32 sequences still within 64 bits.
constexpr std::uint64_t kEndless = std::uint64_t{1} << 31;

/// How many items there are of lengths, on the grid, in [i << shift, (i + 1) << shift).
struct LengthCounts {
  const PlanSettings& settings;
  int shift = 0;
  std::vector<std::uint64_t> counts;

  // At most 2^20 classes, 8 MiB: longer lengths share a class, and the bound rounds up.
  LengthCounts(const PlanSettings& plan, std::uint32_t longest)
      : settings(plan),
        shift(std::max(0, static_cast<int>(std::bit_width(longest)) - 20)),
        counts((longest >> shift) + 1) {}

  void add(std::uint32_t length, std::uint64_t times) {
    counts[on_grid(settings, length) >> shift] += times;
  }
};

/// Each length that is kept counts `times`.
void count_items(std::span<const std::uint32_t> lengths, const PlanSettings& settings,
                 LengthCounts& counts, std::uint64_t times) {
  const ChunkShape shape = chunk_shape(settings);
  for (const std::uint32_t length : lengths) {
    if (length < settings.min_length) continue;
    if (settings.max_length != 0 && length > settings.max_length) continue;
    if (settings.chunk == 0) {
      counts.add(length, times);
      continue;
    }
    const std::uint64_t before = chunks_of(length, shape) - 1;
    // All chunks but the last have full length.
    if (before > 0) counts.add(shape.chunk, before * times);
    const std::uint64_t left = length - before * shape.hop;  // of which the last chunk has most
    counts.add(std::min(static_cast<std::uint32_t>(left), shape.chunk), times);
  }
}

/// The most rows whose lengths add up to the capacity's real frames, and the one that passes them
/// where it belongs to the batch: the shortest ones.
std::uint64_t rows_of_real_frames(const LengthCounts& counts, const Capacity& capacity) {
  std::uint64_t rows = 0, left = capacity.real_frames();
  for (std::size_t i = 0; i < counts.counts.size(); ++i) {
    const auto low = std::max<std::uint64_t>(i << counts.shift, 1);
    const std::uint64_t fit = std::min(counts.counts[i], left / low);
    rows += fit;
    left -= fit * low;
    if (fit < counts.counts[i]) break;
  }
  return rows + (capacity.overruns() ? 1 : 0);
}

/// Bound for batches that stay within the capacity.
PlanBound strict_bound(const LengthCounts& counts, const Capacity& capacity,
                       std::uint32_t longest) {
  PlanBound bound;
  const std::uint64_t most = std::min(capacity.most_rows(), rows_of_real_frames(counts, capacity));
  std::uint64_t as_short = 0;  // items no longer than those of this class
  for (std::size_t i = 0; i < counts.counts.size(); ++i) {
    if (counts.counts[i] == 0) continue;
    as_short += counts.counts[i];
    // The shortest of the class decides how many rows fit, the longest how far they are padded.
    const auto low = static_cast<std::uint32_t>(std::max<std::size_t>(i << counts.shift, 1));
    const auto high =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(((i + 1) << counts.shift) - 1, longest));
    const std::uint64_t rows = std::min({as_short, capacity.rows_within(low), most});
    bound.rows = std::max(bound.rows, rows);
    bound.padded_frames = std::max(bound.padded_frames, rows * high);
  }
  return bound;
}

/// The lines of an order file are batches of known rows.
PlanBound listed_bound(const PlanBuilder& builder, const PlanSettings& settings) {
  PlanBound bound;
  const std::vector<std::uint32_t>& starts = builder.table.listed()->line_starts;
  for (std::size_t line = 0; line + 1 < starts.size(); ++line) {
    const std::uint64_t rows = starts[line + 1] - starts[line];
    std::uint32_t longest = 0;
    for (std::uint32_t item = starts[line]; item < starts[line + 1]; ++item) {
      longest = std::max(longest, builder.table.length(item));
    }
    longest = on_grid(settings, longest);
    bound.rows = std::max(bound.rows, rows);
    bound.padded_frames = std::max(bound.padded_frames, rows * longest);
  }
  return bound;
}

PlanBound bound_of(const PlanBuilder& builder, const PlanSettings& settings) {
  if (settings.cut == Cut::file) return listed_bound(builder, settings);
  // Every batch has `lanes` rows, each with at most `unroll` frames.
  if (settings.lanes != 0) {
    return {settings.lanes,
            std::uint64_t{settings.lanes} * std::min(settings.unroll, builder.longest)};
  }
  const std::uint32_t longest = on_grid(settings, builder.longest);
  LengthCounts counts(settings, longest);
  // A mixed dataset may come several times in an epoch: as if each length came without end.
  if (builder.table.listed() != nullptr) {
    builder.each_item(
        [&](std::uint32_t, std::uint32_t, std::uint32_t length) { counts.add(length, 1); });
  } else {
    count_items(builder.table.sequence_lengths(), settings, counts,
                settings.mix_weights.empty() ? 1 : kEndless);
  }
  const Capacity capacity(settings, longest);
  PlanBound bound = strict_bound(counts, capacity, longest);
  if (!capacity.overruns_padded()) return bound;
  // One row more, which in other orders than sorted may be the longest of all.
  bound.rows = std::min(bound.rows + 1, capacity.most_rows());
  bound.padded_frames =
      settings.order == Order::sorted ? bound.padded_frames + longest : bound.rows * longest;
  return bound;
}

}  // namespace

Result<PlanBound> plan_bound(std::span<const std::uint32_t> lengths, const PlanSettings& settings,
                             std::span<const std::uint64_t> datasets) {
  if (auto checked = check_settings(settings); !checked) return checked.error();
  const auto builder = begin_plan(lengths, settings, datasets);
  if (!builder) return builder.error();
  if (auto fits = check_capacity(*builder, settings); !fits) return fits.error();
  if (auto reach = check_boundaries(*builder, settings); !reach) return reach.error();
  const PlanBound bound = bound_of(*builder, settings);
  // Last, as it may have to plan whole epochs.
  const PlanInput input{lengths, settings, datasets};
  if (auto planned = check_later_epochs(input, *builder, bound); !planned) return planned.error();
  return bound;
}

}  // namespace batchwright
