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

LengthRange range_of(const Draft& draft) {
  // Counted when the draft began, so that the usual epoch needs no pass over its lengths.
  if (draft.uses_all && !draft.table.is_chunked()) return {draft.shortest, draft.longest};
  LengthRange range{draft.longest, 0};
  draft.each_item([&](std::uint32_t, std::uint32_t, std::uint32_t length) {
    range.shortest = std::min(range.shortest, length);
    range.longest = std::max(range.longest, length);
  });
  return range;
}

KeyScale key_scale(const Draft& draft, double randomization) {
  const LengthRange lengths = range_of(draft);
  const double range = lengths.longest - lengths.shortest;
  const double noise = range * randomization;
  int places = 31;
  // The most places with which range and noise stay below 2^32: the finest grain of noise.
  while (std::ldexp(range + noise, places) >= 4294967296.0) --places;
  return {lengths.shortest, places, static_cast<std::uint64_t>(std::ldexp(noise, places))};
}

void order_randomly(Draft& draft, std::uint64_t seed) {
  // Rao and Sandelius: each item draws a part, and each part is shuffled in the cache.
  const RandomStream random(seed, Stream::order);
  const auto place = [&](std::uint32_t i, std::uint32_t item, std::uint32_t length) {
    return Placed{part_of(random.bits32_at(i)), key_word(length, item)};
  };
  const Parts parts = order_by_parts(draft, place);
  RandomStream ties(seed, Stream::ties);
  parts.each(draft.order.words(), [&](std::span<std::uint64_t> part) { permute(part, ties); });
}

/// Sorts parts of an order, with as much memory as there is for it.
class PartSorter {
 public:
  /// `largest`: words of the largest part.
  PartSorter(const Draft& draft, std::size_t largest)
      : size_(std::min(largest, std::max(kLeastSpare, draft.spare_bytes() / 8))),
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
void order_descending(Draft& draft, double randomization, std::uint64_t seed) {
  const KeyScale scale = key_scale(draft, randomization);
  const RandomStream noise(seed, Stream::noise);
  const bool noisy = scale.width != 0;
  const auto place = [&](std::uint32_t i, std::uint32_t item, std::uint32_t length) {
    const std::uint32_t drawn = noisy ? noise.bits32_at(i) : 0;
    // Inverted, since the sort is ascending and the longest come first.
    const std::uint32_t key = ~scale.key(length, drawn);
    return Placed{part_of(key), key_word(key, item)};
  };
  const Parts parts = order_by_parts(draft, place);
  RandomStream ties(seed, Stream::ties);
  const PartSorter sort(draft, parts.largest);
  // Computing the noise once more and taking it off is cheaper than looking the length up.
  const bool subtracts = scale.places >= 0 && (!noisy || draft.uses_all);
  parts.each(draft.order.words(), [&](std::span<std::uint64_t> part) {
    sort(part);
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
  const auto place = [&](std::uint32_t, std::uint32_t item, std::uint32_t length) {
    const std::uint32_t key = scale.key(length, 0);
    return Placed{part_of(key), key_word(key, item)};
  };
  const Parts parts = order_by_parts(draft, place);
  const PartSorter sort(draft, parts.largest);
  parts.each(draft.order.words(), [&](std::span<std::uint64_t> part) {
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
  const std::size_t count = draft.rows;
  if (bins > count) return too_many("bins", bins, count);
  // Ties between equal lengths then stay in a random order, as the sort is stable.
  order_randomly(draft, seed);
  const PartSorter sort(draft, (count + bins - 1) / bins);
  const auto words = draft.order.words();
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
Result<std::vector<std::uint32_t>> best_limits(const Draft& draft, std::uint32_t buckets) {
  if (buckets > draft.rows) return too_many("bucket_count", buckets, draft.rows);
  const LengthRange range = range_of(draft);
  const auto each = [&draft](const auto& use) {
    draft.each_item([&](std::uint32_t, std::uint32_t, std::uint32_t length) { use(length); });
  };
  return optimal_boundaries(classes_of(draft.rows, range.shortest, range.longest, each), buckets);
}

/// Buckets of lengths, shortest first, each in a random order.
Result<void> order_by_length(Draft& draft, const PlanSettings& settings, std::uint64_t seed) {
  draft.buckets = {settings.bucket_span, settings.bucket_boundaries};
  if (settings.order == Order::bucket_optimal) {
    auto best = best_limits(draft, settings.bucket_count);  // before the order takes its memory
    if (!best) return best.error();
    draft.buckets.list = std::move(*best);
  }
  order_ascending(draft);
  RandomStream random(seed, Stream::bucket);
  const auto words = draft.order.words();
  draft.used_buckets = 0;
  for (std::size_t start = 0; start < words.size(); ++draft.used_buckets) {
    const std::size_t end = draft.bucket_end(start);
    permute(words.subspan(start, end - start), random);
    start = end;
  }
  return {};
}

/// As the file has them.
void order_as_listed(Draft& draft) {
  draft.order = WordBuffer(draft.rows);
  const auto words = draft.order.words();
  draft.each_item([&](std::uint32_t i, std::uint32_t item, std::uint32_t length) {
    words[i] = key_word(length, item);
  });
}

}  // namespace

Result<void> check_boundaries(const Draft& draft, const PlanSettings& settings) {
  const auto& limits = settings.bucket_boundaries;
  if (limits.empty() || limits.back() >= draft.longest) return {};
  return Error{ErrorCode::infeasible,
               fmt::format("bucket_boundaries end at {}, and the longest row has {} frames: add a "
                           "boundary, or set max_length",
                           limits.back(), draft.longest)};
}

Result<void> order_items(Draft& draft, const PlanSettings& settings, std::uint64_t seed) {
  switch (settings.order) {
    case Order::sorted: order_descending(draft, 0, seed); return {};
    case Order::semi_sorted: order_descending(draft, settings.randomization, seed); return {};
    case Order::bucket: order_by_rank(draft, settings.bucket_size, seed); return {};
    case Order::alternated: return order_alternated(draft, settings.bins, seed);
    case Order::bucket_span:
    case Order::bucket_optimal: return order_by_length(draft, settings, seed);
    case Order::file: order_as_listed(draft); return {};
    case Order::random: break;
  }
  order_randomly(draft, seed);
  return {};
}

}  // namespace batchwright
