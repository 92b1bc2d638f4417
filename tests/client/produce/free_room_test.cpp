#include "client/library/produce/free_room.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

using namespace batchwright;

namespace {

constexpr std::uint64_t kGranule = FreeRoom::kGranule;

}  // namespace

TEST_CASE("client: an area's room is whole again, in whatever order its parts come back") {
  const std::array<std::uint64_t, 5> sizes = {64, 1, 200, 64, 129};
  std::array<std::size_t, 5> order{};
  std::iota(order.begin(), order.end(), 0);
  std::size_t orders = 0;
  do {
    FreeRoom room(64 + 64 + 256 + 64 + 192);
    std::array<std::uint64_t, 5> places{};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto place = room.take(sizes[i]);
      REQUIRE(place);
      places[i] = *place;
    }
    REQUIRE(places == std::array<std::uint64_t, 5>{0, 64, 128, 384, 448});
    CHECK_FALSE(room.take(1));
    for (const std::size_t i : order) room.give_back(places[i], sizes[i]);
    CHECK(room.used() == 0);
    CHECK(room.take(640) == 0);  // one part, since no two free ones touch
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(orders == 120);
}

TEST_CASE("client: an area gives the first room that is large enough") {
  FreeRoom room(10 * kGranule);
  for (std::uint64_t i = 0; i < 10; ++i) REQUIRE(room.take(kGranule) == i * kGranule);
  room.give_back(1 * kGranule, kGranule);
  room.give_back(4 * kGranule, 2 * kGranule);
  room.give_back(8 * kGranule, kGranule);
  CHECK(room.take(2 * kGranule) == 4 * kGranule);
  CHECK_FALSE(room.take(2 * kGranule));
  CHECK(room.take(0) == 1 * kGranule);  // nothing has a place of its own, too
  CHECK(room.take(1) == 8 * kGranule);
  CHECK(room.used() == 10 * kGranule);
}

TEST_CASE("client: an area has whole granules alone") {
  CHECK_FALSE(FreeRoom(63).take(1));
  FreeRoom room(2 * kGranule + 63);
  CHECK(room.take(kGranule) == 0);
  CHECK_FALSE(room.take(kGranule + 1));
  CHECK(room.take(kGranule) == kGranule);
}

TEST_CASE("client: an area's room never overlaps, against a map of granules") {
  constexpr std::size_t kGranules = 24;
  std::uint64_t dice = 88172645463325252ULL;
  const auto roll = [&dice](std::uint64_t below) {
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice % below;
  };
  FreeRoom room(kGranules * kGranule);
  std::vector<bool> taken(kGranules);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;  // place and bytes
  const auto mark = [&](std::uint64_t place, std::uint64_t bytes, bool value) {
    for (std::uint64_t i = 0; i < FreeRoom::taken_by(bytes) / kGranule; ++i) {
      REQUIRE(taken[place / kGranule + i] != value);
      taken[place / kGranule + i] = value;
    }
  };
  for (int i = 0; i < 20'000; ++i) {
    if (roll(2) == 0 && !parts.empty()) {
      const auto part = parts.begin() + static_cast<std::ptrdiff_t>(roll(parts.size()));
      mark(part->first, part->second, false);
      room.give_back(part->first, part->second);
      parts.erase(part);
      continue;
    }
    const std::uint64_t bytes = roll(5 * kGranule);
    const std::uint64_t granules = FreeRoom::taken_by(bytes) / kGranule;
    std::size_t first = kGranules;
    for (std::size_t at = 0; at + granules <= kGranules && first == kGranules; ++at) {
      const auto from = taken.begin() + static_cast<std::ptrdiff_t>(at);
      const auto to = from + static_cast<std::ptrdiff_t>(granules);
      if (std::find(from, to, true) == to) first = at;
    }
    const auto place = room.take(bytes);
    REQUIRE(place.has_value() == (first != kGranules));
    if (!place) continue;
    CHECK(*place == first * kGranule);
    mark(*place, bytes, true);
    parts.emplace_back(*place, bytes);
  }
}
