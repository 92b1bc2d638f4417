#include "daemon/planning/order.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "daemon/planning/buckets.h"
#include "daemon/planning/sort.h"

namespace batchwright {
namespace {

/// Lengths as keys of 32 bits with the noise of semi-sorted batching on top: fixed point with as
/// many binary places as fit. Without noise it orders and ties exactly as the lengths do.
struct KeyScale {
  std::uint32_t shortest = 0;
  int places = 0;           ///< Negative when the range of the keys passes 32 bits.
  std::uint64_t width = 0;  ///< Noise is uniform in [0, width): in units of the last place.

  std::uint32_t key(std::uint32_t length, std::uint32_t noise) const {
    const std::uint64_t above = length - shortest;
    const std::uint64_t scaled = places >= 0 ? above << places : above >> -places;
    return static_cast<std::uint32_t>(scaled + ((width * noise) >> 32));
  }
};

KeyScale key_scale(const Draft& draft, double randomization) {
  std::uint32_t shortest = draft.longest;
  std::uint32_t longest = 0;
  for (const std::uint32_t item : draft.items) {
    shortest = std::min(shortest, draft.table.length(item));
    longest = std::max(longest, draft.table.length(item));
  }
  const double range = longest - shortest;
  const double noise = range * randomization;
  int places = 31;
  while (std::ldexp(range + noise, places) >= 4294967296.0) --places;
  return {shortest, places, static_cast<std::uint64_t>(std::ldexp(noise, places))};
}

/// Longest first; ties at random.
void sort_descending(Draft& draft, double randomization, std::uint64_t seed) {
  const KeyScale scale = key_scale(draft, randomization);
  RandomStream ties(seed, Stream::ties);
  const auto make_key = [&draft, &scale, seed] {
    return [&draft, &scale, noise = RandomStream(seed, Stream::noise)](std::uint32_t item) mutable {
      const std::uint32_t length = draft.table.length(item);
      return ~scale.key(length, scale.width == 0 ? 0 : noise.bits32());
    };
  };
  sort_items(draft.items, make_key, &ties);
}

/// Shortest first; ties by id.
void sort_ascending(Draft& draft) {
  const KeyScale scale = key_scale(draft, 0);
  const auto make_key = [&draft, &scale] {
    return [&draft, &scale](std::uint32_t item) { return scale.key(draft.table.length(item), 0); };
  };
  sort_items(draft.items, make_key, nullptr);
}

Error too_many(std::string_view name, std::uint32_t value, std::size_t rows) {
  return {ErrorCode::infeasible, std::string(name) + " = " + std::to_string(value) +
                                     " is more than the epoch's " + std::to_string(rows) + " rows"};
}

void order_by_rank(Draft& draft, std::uint32_t size, std::uint64_t seed) {
  sort_descending(draft, 0, seed);
  RandomStream random(seed, Stream::bucket);
  const std::span items(draft.items);
  for (std::size_t start = 0; start < items.size(); start += size) {
    permute(items.subspan(start, std::min<std::size_t>(size, items.size() - start)), random);
  }
}

/// Bins of nearly equal size out of a random order, sorted up and down in turn.
Result<void> order_alternated(Draft& draft, std::uint32_t bins, std::uint64_t seed) {
  const std::size_t count = draft.items.size();
  if (bins > count) return too_many("bins", bins, count);
  RandomStream random(seed, Stream::order);
  permute(std::span(draft.items), random);
  const std::size_t most = (count + bins - 1) / bins;
  const auto words = std::make_unique_for_overwrite<std::uint64_t[]>(most);
  const auto spare = std::make_unique_for_overwrite<std::uint64_t[]>(most);
  std::size_t start = 0;
  for (std::uint32_t bin = 0; bin < bins; ++bin) {
    const std::size_t size = count / bins + (bin < count % bins ? 1 : 0);
    const std::uint32_t flip = bin % 2 == 0 ? 0 : ~std::uint32_t{0};
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t item = draft.items[start + i];
      words[i] = key_word(draft.table.length(item) ^ flip, item);
    }
    stable_sort_by_key({words.get(), size}, {spare.get(), size});
    for (std::size_t i = 0; i < size; ++i) {
      draft.items[start + i] = static_cast<std::uint32_t>(words[i]);
    }
    start += size;
  }
  return {};
}

/// The lengths of items that are sorted, shortest first.
LengthClasses classes_of(const Draft& draft) {
  LengthClasses classes;
  for (const std::uint32_t item : draft.items) {
    const std::uint32_t length = draft.table.length(item);
    if (classes.lengths.empty() || classes.lengths.back() != length) {
      classes.lengths.push_back(length);
      classes.counts.push_back(0);
    }
    ++classes.counts.back();
  }
  return classes;
}

/// The longest length of each bucket.
Result<std::vector<std::uint32_t>> bucket_limits(const Draft& draft, const PlanSettings& settings) {
  if (settings.order == Order::bucket_optimal) {
    if (settings.bucket_count > draft.items.size()) {
      return too_many("bucket_count", settings.bucket_count, draft.items.size());
    }
    return optimal_boundaries(classes_of(draft), settings.bucket_count);
  }
  if (!settings.bucket_boundaries.empty()) {
    if (settings.bucket_boundaries.back() >= draft.longest) return settings.bucket_boundaries;
    return Error{ErrorCode::infeasible,
                 "bucket_boundaries end at " + std::to_string(settings.bucket_boundaries.back()) +
                     ", and the longest row has " + std::to_string(draft.longest) +
                     " frames: add a boundary, or set max_length"};
  }
  std::vector<std::uint32_t> limits;
  for (const std::uint32_t item : draft.items) {
    const std::uint32_t length = draft.table.length(item);
    if (!limits.empty() && length <= limits.back()) continue;
    limits.push_back((length - 1) / settings.bucket_span * settings.bucket_span +
                     settings.bucket_span);
  }
  return limits;
}

/// Buckets of lengths, shortest first, each in a random order.
Result<void> order_by_length(Draft& draft, const PlanSettings& settings, std::uint64_t seed) {
  sort_ascending(draft);
  auto limits = bucket_limits(draft, settings);
  if (!limits) return limits.error();
  RandomStream random(seed, Stream::bucket);
  const std::span items(draft.items);
  std::size_t start = 0;
  for (const std::uint32_t limit : *limits) {
    std::size_t end = start;
    while (end < items.size() && draft.table.length(items[end]) <= limit) ++end;
    if (end == start) continue;
    permute(items.subspan(start, end - start), random);
    draft.bucket_ends.push_back(static_cast<std::uint32_t>(end));
    start = end;
  }
  draft.bucket_limits = std::move(*limits);
  return {};
}

}  // namespace

Result<void> order_items(Draft& draft, const PlanSettings& settings, std::uint64_t seed) {
  switch (settings.order) {
    case Order::sorted: sort_descending(draft, 0, seed); return {};
    case Order::semi_sorted: sort_descending(draft, settings.randomization, seed); return {};
    case Order::bucket: order_by_rank(draft, settings.bucket_size, seed); return {};
    case Order::alternated: return order_alternated(draft, settings.bins, seed);
    case Order::bucket_span:
    case Order::bucket_optimal: return order_by_length(draft, settings, seed);
    case Order::random: break;
  }
  RandomStream random(seed, Stream::order);
  permute(std::span(draft.items), random);
  return {};
}

}  // namespace batchwright
