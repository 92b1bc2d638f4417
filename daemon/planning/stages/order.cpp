#include "daemon/planning/stages/order.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "daemon/planning/stages/buckets.h"
#include "daemon/planning/stages/sort.h"

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

/// The shortest and longest of the items used.
struct LengthRange {
  std::uint32_t shortest, longest;
};

LengthRange range_of(const PlanBuilder& builder) {
  // Counted when the builder began, so that the usual epoch needs no pass over its lengths.
  if (builder.uses_all && !builder.table.is_chunked()) return {builder.shortest, builder.longest};
  LengthRange range{builder.longest, 0};
  builder.each_item([&](std::uint32_t, std::uint32_t, std::uint32_t length) {
    range.shortest = std::min(range.shortest, length);
    range.longest = std::max(range.longest, length);
  });
  return range;
}

KeyScale key_scale(const PlanBuilder& builder, double randomization) {
  const LengthRange lengths = range_of(builder);
  const double range = lengths.longest - lengths.shortest;
  const double noise = range * randomization;
  int places = 31;
  // The most places with which range and noise stay below 2^32: the finest grain of noise.
  while (std::ldexp(range + noise, places) >= 4294967296.0) --places;
  return {lengths.shortest, places, static_cast<std::uint64_t>(std::ldexp(noise, places))};
}

void order_randomly(PlanBuilder& builder, std::uint64_t seed) {
  // Rao and Sandelius: each item draws a part, and each part is shuffled in the cache.
  const RandomStream random(seed, Stream::order);
  const auto place = [&](std::uint32_t i, std::uint32_t item, std::uint32_t length) {
    return Placed{part_of(random.bits32_at(i)), key_word(length, item)};
  };
  const Parts parts = order_by_parts(builder, place);
  RandomStream ties(seed, Stream::ties);
  parts.each(builder.order.words(), [&](std::span<std::uint64_t> part) { permute(part, ties); });
}

/// Sorts parts of an order, with as much memory as there is for it.
class PartSorter {
 public:
  /// `largest`: words of the largest part.
  PartSorter(const PlanBuilder& builder, std::size_t largest)
      : size_(std::min(largest, std::max(kLeastSpare, builder.spare_bytes() / 8))),
        spare_(std::make_unique_for_overwrite<std::uint64_t[]>(size_)) {}

  /// Sorts by key; equal keys stay in order.
  void operator()(std::span<std::uint64_t> part) const {
    const auto falls = [](std::uint64_t a, std::uint64_t b) { return a >> 32 < b >> 32; };
    // A part that does not fit the memory is sorted in pieces and merged; one with few different
    // keys, as of equal lengths, is often in order already.
    if (part.size() > size_ && std::is_sorted(part.begin(), part.end(), falls)) return;
    stable_sort_by_key(part, {spare_.get(), size_});
  }

 private:
  static constexpr std::size_t kLeastSpare = 8192;  ///< 64 KiB, so that common parts sort fast.

  std::size_t size_;
  std::unique_ptr<std::uint64_t[]> spare_;
};

/// Longest first with the noise of semi-sorted, if any; ties at random.
void order_descending(PlanBuilder& builder, double randomization, std::uint64_t seed) {
  const KeyScale scale = key_scale(builder, randomization);
  const RandomStream noise(seed, Stream::noise);
  const bool noisy = scale.width != 0;
  const auto place = [&](std::uint32_t i, std::uint32_t item, std::uint32_t length) {
    const std::uint32_t drawn = noisy ? noise.bits32_at(i) : 0;
    // Inverted, since the sort is ascending and the longest come first.
    const std::uint32_t key = ~scale.key(length, drawn);
    return Placed{part_of(key), key_word(key, item)};
  };
  const Parts parts = order_by_parts(builder, place);
  RandomStream ties(seed, Stream::ties);
  const PartSorter sort(builder, parts.largest);
  // Computing the noise once more and taking it off is cheaper than looking the length up.
  const bool subtracts = scale.places >= 0 && (!noisy || builder.uses_all);
  parts.each(builder.order.words(), [&](std::span<std::uint64_t> part) {
    sort(part);
    permute_ties(part, ties);
    for (std::uint64_t& word : part) {
      const std::uint32_t item = item_of(word);
      const std::uint32_t drawn = noisy ? noise.bits32_at(item) : 0;
      word = key_word(subtracts ? scale.length(~key_of(word), drawn) : builder.table.length(item),
                      item);
    }
  });
}

/// Shortest first; ties by id.
void order_ascending(PlanBuilder& builder) {
  const KeyScale scale = key_scale(builder, 0);
  const auto place = [&](std::uint32_t, std::uint32_t item, std::uint32_t length) {
    const std::uint32_t key = scale.key(length, 0);
    return Placed{part_of(key), key_word(key, item)};
  };
  const Parts parts = order_by_parts(builder, place);
  const PartSorter sort(builder, parts.largest);
  parts.each(builder.order.words(), [&](std::span<std::uint64_t> part) {
    sort(part);
    for (std::uint64_t& word : part) {
      // The keys give way to the lengths, which cutting reads.
      word = key_word(scale.length(key_of(word), 0), item_of(word));
    }
  });
}

Error too_many(std::string_view name, std::uint32_t value, std::size_t rows) {
  return {ErrorCode::infeasible,
          fmt::format("{} = {} is more than the epoch's {} rows, allowed: 1 to {}", name, value,
                      rows, rows)};
}

void order_by_rank(PlanBuilder& builder, std::uint32_t size, std::uint64_t seed) {
  order_descending(builder, 0, seed);
  RandomStream random(seed, Stream::bucket);
  const auto words = builder.order.words();
  for (std::size_t start = 0; start < words.size(); start += size) {
    permute(words.subspan(start, std::min<std::size_t>(size, words.size() - start)), random);
  }
}

/// Bins of nearly equal size out of a random order, sorted up and down in turn.
Result<void> order_alternated(PlanBuilder& builder, std::uint32_t bins, std::uint64_t seed) {
  const std::size_t count = builder.rows;
  if (bins > count) return too_many("bins", bins, count);
  // Ties between equal lengths then stay in a random order, as the sort is stable.
  order_randomly(builder, seed);
  const PartSorter sort(builder, (count + bins - 1) / bins);
  const auto words = builder.order.words();
  std::size_t start = 0;
  for (std::uint32_t bin = 0; bin < bins; ++bin) {
    const auto part = words.subspan(start, count / bins + (bin < count % bins ? 1 : 0));
    const std::uint64_t flip = bin % 2 == 0 ? 0 : ~std::uint64_t{0} << 32;  // of the length
    for (std::uint64_t& word : part) word ^= flip;
    sort(part);
    for (std::uint64_t& word : part) word ^= flip;
    start += part.size();
  }
  return {};
}

/// The longest length of each bucket.
Result<std::vector<std::uint32_t>> best_limits(const PlanBuilder& builder, std::uint32_t buckets) {
  if (buckets > builder.rows) return too_many("bucket_count", buckets, builder.rows);
  const LengthRange range = range_of(builder);
  const auto each = [&builder](const auto& use) {
    builder.each_item([&](std::uint32_t, std::uint32_t, std::uint32_t length) { use(length); });
  };
  return optimal_boundaries(classes_of(builder.rows, range.shortest, range.longest, each), buckets);
}

/// Buckets of lengths, shortest first, each in a random order.
Result<void> order_by_length(PlanBuilder& builder, const PlanSettings& settings,
                             std::uint64_t seed) {
  builder.buckets = {settings.bucket_span, settings.bucket_boundaries};
  if (settings.order == Order::bucket_optimal) {
    auto best = best_limits(builder, settings.bucket_count);  // before the order takes its memory
    if (!best) return best.error();
    builder.buckets.list = std::move(*best);
  }
  order_ascending(builder);
  RandomStream random(seed, Stream::bucket);
  const auto words = builder.order.words();
  builder.used_buckets = 0;
  for (std::size_t start = 0; start < words.size(); ++builder.used_buckets) {
    const std::size_t end = builder.bucket_end(start);
    permute(words.subspan(start, end - start), random);
    start = end;
  }
  return {};
}

/// As the file has them.
void order_as_listed(PlanBuilder& builder) {
  builder.order = WordBuffer(builder.rows);
  const auto words = builder.order.words();
  builder.each_item([&](std::uint32_t i, std::uint32_t item, std::uint32_t length) {
    words[i] = key_word(length, item);
  });
}

}  // namespace

Result<void> check_boundaries(const PlanBuilder& builder, const PlanSettings& settings) {
  const auto& limits = settings.bucket_boundaries;
  if (limits.empty() || limits.back() >= builder.longest) return {};
  return Error{ErrorCode::infeasible,
               fmt::format("bucket_boundaries end at {}, and the longest row has {} frames: add a "
                           "boundary, or set max_length",
                           limits.back(), builder.longest)};
}

Result<void> order_items(PlanBuilder& builder, const PlanSettings& settings, std::uint64_t seed) {
  switch (settings.order) {
    case Order::sorted: order_descending(builder, 0, seed); return {};
    case Order::semi_sorted: order_descending(builder, settings.randomization, seed); return {};
    case Order::bucket: order_by_rank(builder, settings.bucket_size, seed); return {};
    case Order::alternated: return order_alternated(builder, settings.bins, seed);
    case Order::bucket_span:
    case Order::bucket_optimal: return order_by_length(builder, settings, seed);
    case Order::file: order_as_listed(builder); return {};
    case Order::random: break;
  }
  order_randomly(builder, seed);
  return {};
}

}  // namespace batchwright
