#include <doctest/doctest.h>

#include <map>

#include "daemon/assembly/assembly.h"

using namespace batchwright;

namespace {

BatchId batch(std::uint64_t index) { return {Epoch{1}, BatchIndex{index}}; }

std::optional<std::uint64_t> none_needed(const BatchId&) { return SlotCache::kNeverNeeded; }
std::optional<std::uint64_t> all_kept(const BatchId&) { return {}; }

/// Takes a slot and makes it ready.
SlotIndex make_ready(SlotCache& cache, std::uint64_t index) {
  const auto slot = cache.take(batch(index), none_needed);
  REQUIRE(slot);
  cache.filled(*slot, {64, index});
  return *slot;
}

}  // namespace

TEST_CASE("assembly: a new cache is all free and finds nothing") {
  const SlotCache cache(3);
  CHECK(cache.size() == 3);
  CHECK(cache.count(SlotState::free) == 3);
  CHECK(cache.held() == 0);
  CHECK_FALSE(cache.find(batch(0)));
}

TEST_CASE("assembly: a slot goes from free to filling to ready and can be found on the way") {
  SlotCache cache(2);
  const auto slot = cache.take(batch(5), none_needed);
  REQUIRE(slot);
  CHECK(cache.state(*slot) == SlotState::filling);
  CHECK(cache.find(batch(5)) == slot);
  cache.filled(*slot, {128, 4000});
  CHECK(cache.state(*slot) == SlotState::ready);
  CHECK(cache.extent(*slot).offset == 128);
  CHECK(cache.extent(*slot).size == 4000);
  CHECK(cache.find(batch(5)) == slot);
  CHECK(cache.count(SlotState::free) == 1);
}

TEST_CASE("assembly: the same index of another epoch is another batch") {
  SlotCache cache(2);
  make_ready(cache, 5);
  CHECK_FALSE(cache.find({Epoch{2}, BatchIndex{5}}));
}

TEST_CASE("assembly: a batch that could not be made leaves its slot free") {
  SlotCache cache(1);
  const auto slot = cache.take(batch(5), none_needed);
  cache.abandon(*slot);
  CHECK(cache.state(*slot) == SlotState::free);
  CHECK_FALSE(cache.find(batch(5)));
  CHECK(cache.take(batch(6), none_needed));
}

TEST_CASE("assembly: free slots go first, then the least recently used one") {
  SlotCache cache(2);
  const SlotIndex first = make_ready(cache, 0);
  const SlotIndex second = make_ready(cache, 1);
  CHECK(first != second);
  SUBCASE("in order of filling") { CHECK(cache.take(batch(2), none_needed) == first); }
  SUBCASE("a hold and its release are uses") {
    cache.hold(first);
    cache.release(first);
    CHECK(cache.take(batch(2), none_needed) == second);
  }
  CHECK(cache.count(SlotState::filling) == 1);
}

TEST_CASE("assembly: a slot taken again forgets its batch") {
  SlotCache cache(1);
  make_ready(cache, 0);
  const auto slot = cache.take(batch(1), none_needed);
  REQUIRE(slot);
  CHECK_FALSE(cache.find(batch(0)));
  CHECK(cache.find(batch(1)) == slot);
  CHECK(cache.state(*slot) == SlotState::filling);
}

TEST_CASE("assembly: a held slot is not taken before its last holder lets go") {
  SlotCache cache(1);
  const SlotIndex slot = make_ready(cache, 0);
  cache.hold(slot);
  cache.hold(slot);
  CHECK(cache.held() == 1);
  CHECK_FALSE(cache.take(batch(1), none_needed));
  CHECK_FALSE(cache.release(slot));
  CHECK_FALSE(cache.take(batch(1), none_needed));
  CHECK(cache.release(slot));
  CHECK(cache.held() == 0);
  CHECK(cache.take(batch(1), none_needed) == slot);
}

TEST_CASE("assembly: a batch can keep its slot, and a free slot needs no asking") {
  SlotCache cache(2);
  make_ready(cache, 0);
  CHECK(cache.take(batch(1), all_kept));
  CHECK_FALSE(cache.take(batch(2), all_kept));
  CHECK(cache.find(batch(0)));
}

TEST_CASE("assembly: the batch that is needed latest goes, wherever it lies") {
  SlotCache cache(4);
  for (std::uint64_t i = 0; i < 4; ++i) make_ready(cache, i);
  std::map<std::uint64_t, std::optional<std::uint64_t>> needs{{0, 5}, {1, 9}, {2, {}}, {3, 7}};
  const auto need = [&](const BatchId& id) { return needs.at(id.index.value); };
  SUBCASE("the latest") { CHECK(cache.take(batch(4), need) == SlotIndex{1}); }
  SUBCASE("one that is needed no more") {
    needs[3] = SlotCache::kNeverNeeded;
    CHECK(cache.take(batch(4), need) == SlotIndex{3});
  }
  SUBCASE("of two that are needed equally late, the least recently used") {
    needs[3] = 9;
    CHECK(cache.take(batch(4), need) == SlotIndex{1});
    cache.abandon(SlotIndex{1});
    make_ready(cache, 1);  // now used after the other
    CHECK(cache.take(batch(4), need) == SlotIndex{3});
  }
}

TEST_CASE("assembly: a full cache of batches in the making takes no more") {
  SlotCache cache(2);
  CHECK(cache.take(batch(0), none_needed));
  CHECK(cache.take(batch(1), none_needed));
  CHECK(cache.count(SlotState::filling) == 2);
  CHECK_FALSE(cache.take(batch(2), none_needed));
  CHECK_FALSE(cache.find(batch(2)));
}

TEST_CASE("assembly: a retired slot forgets its batch and is free only when abandoned") {
  SlotCache cache(1);
  const SlotIndex slot = make_ready(cache, 0);
  cache.retire(slot);
  CHECK(cache.state(slot) == SlotState::filling);
  CHECK_FALSE(cache.find(batch(0)));
  CHECK_FALSE(cache.take(batch(1), none_needed));
  cache.abandon(slot);
  CHECK(cache.state(slot) == SlotState::free);
}

TEST_CASE("assembly: a batch made again is not forgotten with the slot it had before") {
  SlotCache cache(2);
  const SlotIndex old = make_ready(cache, 0);
  cache.retire(old);
  const SlotIndex now = make_ready(cache, 0);
  cache.abandon(old);
  CHECK(cache.find(batch(0)) == now);
}

TEST_CASE("assembly: a cache without slots is always full") {
  SlotCache cache(0);
  CHECK_FALSE(cache.take(batch(0), none_needed));
}

TEST_CASE("assembly: what a slot's state does not allow breaks an invariant") {
  SlotCache cache(2);
  const SlotIndex ready = make_ready(cache, 0);
  const SlotIndex filling = *cache.take(batch(1), none_needed);
  CHECK_THROWS_AS(cache.release(ready), BrokenInvariant);
  CHECK_THROWS_AS(cache.filled(ready, {}), BrokenInvariant);
  CHECK_THROWS_AS(cache.abandon(ready), BrokenInvariant);
  CHECK_THROWS_AS(cache.hold(filling), BrokenInvariant);
  CHECK_THROWS_AS(cache.retire(filling), BrokenInvariant);
  CHECK_THROWS_AS(static_cast<void>(cache.extent(filling)), BrokenInvariant);
  CHECK_THROWS_AS(cache.take(batch(1), none_needed), BrokenInvariant);
  cache.hold(ready);
  CHECK_THROWS_AS(cache.retire(ready), BrokenInvariant);
}
