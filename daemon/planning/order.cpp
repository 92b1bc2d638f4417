#include "daemon/planning/order.h"

#include <algorithm>
#include <cmath>
#include <string>

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

/// Longest first.
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

}  // namespace

Result<void> order_items(Draft& draft, const PlanSettings& settings, std::uint64_t seed) {
  switch (settings.order) {
    case Order::random: {
      RandomStream random(seed, Stream::order);
      permute(std::span(draft.items), random);
      return {};
    }
    case Order::sorted: sort_descending(draft, 0, seed); return {};
    case Order::semi_sorted: sort_descending(draft, settings.randomization, seed); return {};
    default: break;
  }
  return Error{ErrorCode::unsupported, "order"};
}

}  // namespace batchwright
