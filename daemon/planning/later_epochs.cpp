#include "daemon/planning/later_epochs.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "daemon/planning/stages/cut.h"
#include "daemon/planning/stages/select.h"
#include "daemon/planning/stages/sweep.h"

namespace batchwright {
namespace {

/// Rows and steps are counted in 32 bits, frames up to 2^62 (README.md, "Limits").
constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMostFrames = std::uint64_t{1} << 62;

std::uint64_t sum(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

/// Buckets of lengths that a batch never crosses.
std::uint64_t buckets_of(const PlanSettings& s, std::uint32_t longest) {
  if (s.order == Order::bucket_optimal) return s.bucket_count;
  if (s.order != Order::bucket_span) return 1;
  return s.bucket_span == 0 ? s.bucket_boundaries.size() : longest / s.bucket_span + 1;
}

/// Whether the largest epoch surely keeps within what 32 and 64 bits can count.
bool surely_counted(const PlanBuilder& builder, const PlanSettings& s, const Sweep& sweep) {
  const auto wanted = sequences_wanted(builder, s, sweep.share(0));
  // A mixed dataset that is used up starts again: epoch 0, which uses most, has the most passes.
  std::uint64_t passes = 1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    passes = std::max(passes, (wanted[i] - 1) / builder.datasets[i].kept + 1);
  }
  // Divided, not multiplied: the products are what might not fit.
  if (passes > kMost32 / builder.table.items()) return false;
  const std::uint64_t rows = passes * builder.table.items();
  if (rows > kMostFrames / on_grid(s, builder.longest)) return false;
  return s.lanes == 0 || (builder.longest - 1) / s.unroll + 1 <= kMost32 / (rows + 1);
}

/// Whether any epoch of at least `rows` rows surely makes a whole step. Each of its batches has at
/// most `largest` rows, and at least as many as the longest would, except for up to two at each
/// bucket's end.
bool surely_has_step(std::uint64_t rows, std::uint64_t largest, const PlanBuilder& builder,
                     const PlanSettings& s) {
  const std::uint64_t buckets = buckets_of(s, builder.longest);
  // The last batch of each bucket is the only one that `last` = drop may drop.
  const std::uint64_t dropped = s.last == LastBatch::drop ? buckets : 0;
  const std::uint64_t batches = (rows - 1) / largest + 1;
  if (batches <= dropped) return false;
  if (s.world == 1 || s.remainder == Remainder::wrap) return true;
  if (s.remainder == Remainder::drop) return batches - dropped >= s.world;
  // Spread splits batches in two, so there must be enough rows for a multiple of `world`.
  const std::uint64_t least = Capacity(s, builder.longest).least_full_rows();
  return least >= 2 && rows >= rows / least + 2 * buckets + s.world;
}

/// Whether every epoch can surely be planned.
bool surely_planned(const PlanBuilder& builder, const PlanSettings& s, const Sweep& sweep,
                    const PlanBound& bound) {
  if (!surely_counted(builder, s, sweep)) return false;
  // Each sequence gives at least one row.
  const auto rows = sum(sequences_wanted(builder, s, sweep.share(sweep.smallest_epoch())));
  // Dealing gives each lane a row first, so with as many rows no lane stays empty.
  if (s.lanes != 0) {
    return s.last == LastBatch::keep || rows >= std::uint64_t{s.lanes} * s.world;
  }
  if (s.order == Order::alternated && s.bins > rows) return false;
  if (s.order == Order::bucket_optimal && s.bucket_count > rows) return false;
  return surely_has_step(rows, bound.rows, builder, s);
}

/// The epoch that uses least, the first ones, and when there are many others up to it, so many
/// that trying them takes no time worth speaking of.
std::vector<std::uint64_t> epochs_to_try(const Sweep& sweep, std::size_t sequences) {
  // About 2^18 sequences are planned in all, but at least two epochs.
  const auto count = std::clamp<std::uint64_t>((1 << 18) / sequences, 2, 256);
  const std::uint64_t smallest = sweep.smallest_epoch();
  std::vector<std::uint64_t> epochs = {smallest};
  for (std::uint64_t i = 0; i < count; ++i) {
    epochs.push_back(smallest < count ? i : i * smallest / count);
  }
  return epochs;
}

Error in_epoch(std::uint64_t epoch, std::uint64_t used, const PlanInput& input,
               const PlanBuilder& builder, const Error& error) {
  // The first epoch's error is the plan's own, and needs no word on when.
  if (epoch == 0) return error;
  const std::uint32_t epochs = input.settings.epochs;
  const bool past = epochs != 0 && epoch >= epochs;
  return {error.code, fmt::format("epoch {}{} uses {} of {} sequences: {}", epoch,
                                  past ? fmt::format(", past epochs = {},", epochs) : "", used,
                                  builder.kept, error.message)};
}

}  // namespace

Result<void> check_later_epochs(const PlanInput& input, const PlanBuilder& builder,
                                const PlanBound& bound) {
  const PlanSettings& settings = input.settings;
  if (builder.table.listed() != nullptr) {  // all epochs have the same rows
    const auto plan = plan_epoch(input.lengths, settings, Epoch{0}, input.datasets);
    return plan ? Result<void>() : plan.error();
  }
  const auto sweep = Sweep::make(settings);
  if (!sweep) return sweep.error();
  // The usual case: it costs a few divisions, and no epoch is planned.
  if (surely_planned(builder, settings, *sweep, bound)) return {};
  for (const std::uint64_t epoch : epochs_to_try(*sweep, input.lengths.size())) {
    const auto plan = plan_epoch(input.lengths, settings, Epoch{epoch}, input.datasets);
    if (plan) continue;
    const std::uint64_t used = sum(sequences_wanted(builder, settings, sweep->share(epoch)));
    return in_epoch(epoch, used, input, builder, plan.error());
  }
  return {};
}

}  // namespace batchwright
