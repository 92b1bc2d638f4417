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

  /// The length that gave `key` with this noise, for places >= 0.
  std::uint32_t length(std::uint32_t key, std::uint32_t noise) const {
    const auto scaled = key - static_cast<std::uint32_t>((width * noise) >> 32);
    return shortest + (scaled >> places);
  }
};

KeyScale key_scale(const Draft& draft, double randomization) {
  std::uint32_t shortest = draft.shortest;
  std::uint32_t longest = draft.longest;
  if (!draft.uses_all || draft.table.is_chunked()) {
    shortest = draft.longest;
    longest = 0;
    draft.each_item([&](std::uint32_t, std::uint32_t item) {
      const std::uint32_t length = draft.table.length(item);
      shortest = std::min(shortest, length);
      longest = std::max(longest, length);
    });
  }
  const double range = longest - shortest;
  const double noise = range * randomization;
  int places = 31;
  while (std::ldexp(range + noise, places) >= 4294967296.0) --places;
  return {shortest, places, static_cast<std::uint64_t>(std::ldexp(noise, places))};
}

void order_randomly(Draft& draft, std::uint64_t seed) {
  const RandomStream random(seed, Stream::order);
  const auto place = [&](std::uint32_t i, std::uint32_t item) {
    return Placed{part_of(random.bits32_at(i)), key_word(draft.table.length(item), item)};
  };
  const Parts parts = order_by_parts(draft, place);
  RandomStream ties(seed, Stream::ties);
  parts.each(draft.order.words(), [&](std::span<std::uint64_t> part) { permute(part, ties); });
}

/// Longest first with the noise of semi-sorted, if any; ties at random.
void order_descending(Draft& draft, double randomization, std::uint64_t seed) {
  const KeyScale scale = key_scale(draft, randomization);
  const RandomStream noise(seed, Stream::noise);
  const bool noisy = scale.width != 0;
  const auto place = [&](std::uint32_t i, std::uint32_t item) {
    const std::uint32_t drawn = noisy ? noise.bits32_at(i) : 0;
    const std::uint32_t key = ~scale.key(draft.table.length(item), drawn);
    return Placed{part_of(key), key_word(key, item)};
  };
  const Parts parts = order_by_parts(draft, place);
  RandomStream ties(seed, Stream::ties);
  const auto spare = std::make_unique_for_overwrite<std::uint64_t[]>(parts.largest);
  // Computing the noise once more and taking it off is cheaper than looking the length up.
  const bool subtracts = scale.places >= 0 && (!noisy || draft.uses_all);
  parts.each(draft.order.words(), [&](std::span<std::uint64_t> part) {
    stable_sort_by_key(part, {spare.get(), part.size()});
    permute_ties(part, ties);
    for (std::uint64_t& word : part) {
      const std::uint32_t item = item_of(word);
      const std::uint32_t drawn = noisy ? noise.bits32_at(item) : 0;
      word =
          key_word(subtracts ? scale.length(~key_of(word), drawn) : draft.table.length(item), item);
    }
  });
}

/// Shortest first; ties by id.
void order_ascending(Draft& draft) {
  const KeyScale scale = key_scale(draft, 0);
  const auto place = [&](std::uint32_t, std::uint32_t item) {
    const std::uint32_t key = scale.key(draft.table.length(item), 0);
    return Placed{part_of(key), key_word(key, item)};
  };
  const Parts parts = order_by_parts(draft, place);
  const auto spare = std::make_unique_for_overwrite<std::uint64_t[]>(parts.largest);
  parts.each(draft.order.words(), [&](std::span<std::uint64_t> part) {
    stable_sort_by_key(part, {spare.get(), part.size()});
    for (std::uint64_t& word : part) {
      word = key_word(scale.length(key_of(word), 0), item_of(word));
    }
  });
}

Error too_many(std::string_view name, std::uint32_t value, std::size_t rows) {
  return {ErrorCode::infeasible, std::string(name) + " = " + std::to_string(value) +
                                     " is more than the epoch's " + std::to_string(rows) +
                                     " rows, allowed: 1 to " + std::to_string(rows)};
}

void order_by_rank(Draft& draft, std::uint32_t size, std::uint64_t seed) {
  order_descending(draft, 0, seed);
  RandomStream random(seed, Stream::bucket);
  const auto words = draft.order.words();
  for (std::size_t start = 0; start < words.size(); start += size) {
    permute(words.subspan(start, std::min<std::size_t>(size, words.size() - start)), random);
  }
}

/// Bins of nearly equal size out of a random order, sorted up and down in turn.
Result<void> order_alternated(Draft& draft, std::uint32_t bins, std::uint64_t seed) {
  const std::size_t count = draft.rows();
  if (bins > count) return too_many("bins", bins, count);
  order_randomly(draft, seed);
  const auto spare = std::make_unique_for_overwrite<std::uint64_t[]>((count + bins - 1) / bins);
  const auto words = draft.order.words();
  std::size_t start = 0;
  for (std::uint32_t bin = 0; bin < bins; ++bin) {
    const auto part = words.subspan(start, count / bins + (bin < count % bins ? 1 : 0));
    const std::uint64_t flip = bin % 2 == 0 ? 0 : ~std::uint64_t{0} << 32;  // of the length
    for (std::uint64_t& word : part) word ^= flip;
    stable_sort_by_key(part, {spare.get(), part.size()});
    for (std::uint64_t& word : part) word ^= flip;
    start += part.size();
  }
  return {};
}

/// The lengths of words that are sorted, shortest first.
LengthClasses classes_of(std::span<const std::uint64_t> words) {
  LengthClasses classes;
  for (const std::uint64_t word : words) {
    if (classes.lengths.empty() || classes.lengths.back() != key_of(word)) {
      classes.lengths.push_back(key_of(word));
      classes.counts.push_back(0);
    }
    ++classes.counts.back();
  }
  return classes;
}

/// The longest length of each bucket.
Result<std::vector<std::uint32_t>> bucket_limits(std::span<const std::uint64_t> words,
                                                 const PlanSettings& settings) {
  if (settings.order == Order::bucket_optimal) {
    if (settings.bucket_count > words.size()) {
      return too_many("bucket_count", settings.bucket_count, words.size());
    }
    return optimal_boundaries(classes_of(words), settings.bucket_count);
  }
  if (!settings.bucket_boundaries.empty()) return settings.bucket_boundaries;
  std::vector<std::uint32_t> limits;
  for (const std::uint64_t word : words) {
    if (!limits.empty() && key_of(word) <= limits.back()) continue;
    limits.push_back(((key_of(word) - 1) / settings.bucket_span + 1) * settings.bucket_span);
  }
  return limits;
}

/// Buckets of lengths, shortest first, each in a random order.
Result<void> order_by_length(Draft& draft, const PlanSettings& settings, std::uint64_t seed) {
  order_ascending(draft);
  const auto words = draft.order.words();
  auto limits = bucket_limits(words, settings);
  if (!limits) return limits.error();
  RandomStream random(seed, Stream::bucket);
  std::size_t start = 0;
  for (const std::uint32_t limit : *limits) {
    std::size_t end = start;
    while (end < words.size() && key_of(words[end]) <= limit) ++end;
    if (end == start) continue;
    permute(words.subspan(start, end - start), random);
    draft.bucket_ends.push_back(static_cast<std::uint32_t>(end));
    start = end;
  }
  draft.bucket_limits = std::move(*limits);
  return {};
}

}  // namespace

Result<void> check_boundaries(const Draft& draft, const PlanSettings& settings) {
  const auto& limits = settings.bucket_boundaries;
  if (limits.empty() || limits.back() >= draft.longest) return {};
  return Error{ErrorCode::infeasible, "bucket_boundaries end at " + std::to_string(limits.back()) +
                                          ", and the longest row has " +
                                          std::to_string(draft.longest) +
                                          " frames: add a boundary, or set max_length"};
}

Result<void> order_items(Draft& draft, const PlanSettings& settings, std::uint64_t seed) {
  switch (settings.order) {
    case Order::sorted: order_descending(draft, 0, seed); return {};
    case Order::semi_sorted: order_descending(draft, settings.randomization, seed); return {};
    case Order::bucket: order_by_rank(draft, settings.bucket_size, seed); return {};
    case Order::alternated: return order_alternated(draft, settings.bins, seed);
    case Order::bucket_span:
    case Order::bucket_optimal: return order_by_length(draft, settings, seed);
    case Order::random: break;
  }
  order_randomly(draft, seed);
  return {};
}

}  // namespace batchwright
